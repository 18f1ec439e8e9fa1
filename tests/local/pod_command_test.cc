#include "operator/local/pod_command.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tj {
namespace {

using Json = nlohmann::json;

TEST(ExpandReferences, follows_kubernetes) {
  const std::vector<EnvVar> known = {{"A", "one"}, {"B", "$(A)"}, {"EMPTY", ""}, {"A", "two"}};
  // The table of k8s.io/kubernetes/third_party/forked/golang/expansion/expand_test.go, shortened.
  const std::pair<const char*, const char*> kCases[] = {
      {"$(A)", "two"},        {"x$(A)y", "xtwoy"},    {"$(A)$(B)", "two$(A)"},
      {"$(EMPTY)", ""},       {"$(NOPE)", "$(NOPE)"}, {"$$(A)", "$(A)"},
      {"$$$(A)", "$two"},     {"$$$$(A)", "$$(A)"},   {"$", "$"},
      {"cost $5", "cost $5"}, {"$A", "$A"},           {"$(A", "$(A"},
      {"$()", "$()"},         {"a$", "a$"},           {"$$", "$"},
      {"${A}", "${A}"},       {"$($(A))", "$($(A))"}, {"", ""}};
  for (const auto& [text, expanded] : kCases)
    EXPECT_EQ(expand_references(text, known), expanded) << text;
}

TEST(ReplaceMounts, replaces_whole_paths_where_a_path_can_begin) {
  const std::vector<MountedFolder> mounts = {{"/data", "/here"}, {"/data/deep", "/there"}};
  const std::pair<const char*, const char*> kCases[] = {
      {"/data", "/here"},
      {"/data/x", "/here/x"},
      {"/data/deep/x", "/there/x"},
      {"/database", "/database"},
      {"/mnt/data", "/mnt/data"},
      {"--in=/data/x", "--in=/here/x"},
      {"/a:/data:/data/deep", "/a:/here:/there"},
      {"cd /data && cat '/data/deep/x'", "cd /here && cat '/there/x'"},
      {"text", "text"}};
  for (const auto& [text, replaced] : kCases)
    EXPECT_EQ(replace_mounts(text, mounts), replaced) << text;
}

TEST(FindProgram, searches_as_a_shell_does) {
  EXPECT_EQ(find_program("sh", "/nowhere:/bin"), "/bin/sh");
  EXPECT_EQ(find_program("sh", "/nowhere"), "");
  EXPECT_EQ(find_program("./x", "/bin"), "./x");
  EXPECT_EQ(find_program("bin", "/"), "") << "a folder is no program";
}

struct LocalProcessTest : testing::Test {
  LocalFacts facts{
      .node_name = "box",
      .master_port = 4711,
      .volumes_folder = "/out/volumes",
      .termination_log = "/out/last-words/p",
      .path_folders = {"/opt/tj"},
      .machine_env = {{"HOME", "/home/me"}, {"PATH", "/bin"}, {"RANK", "7"}, {"PET_NNODES", "9"}}};
  Json pod = {
      {"metadata", {{"name", "p"}, {"namespace", "ns"}, {"uid", "u"}, {"labels", {{"l", "v"}}}}},
      {"spec", {{"containers", Json::array({{{"name", "c"}, {"command", {"run"}}}})}}}};
  Json& container() { return pod["spec"]["containers"][0]; }
  void set_env(const Json& env) { container()["env"] = env; }
  Result<ProcessSpec> process() { return local_process(pod, container(), facts); }
  std::string error() {
    const auto result = process();
    return result.ok() ? "no error" : describe(result.error());
  }
};

TEST_F(LocalProcessTest, the_containers_variables_follow_the_machines_in_the_manifests_order) {
  set_env({{{"name", "RANK"}, {"value", "1"}},
           {{"name", "MASTER_ADDR"}, {"value", "job-worker-0.job"}},
           {{"name", "MASTER_PORT"}, {"value", "29500"}},
           {{"name", "ADDR"}, {"value", "tcp://$(MASTER_ADDR):$(MASTER_PORT) $(LATER) $(HOME)"}},
           {{"name", "LATER"}, {"value", "x"}}});
  const std::vector<EnvVar> expected = {{"HOME", "/home/me"},
                                        {"PATH", "/opt/tj:/bin"},
                                        {"TRAININGJOB_TERMINATION_LOG", "/out/last-words/p"},
                                        {"RANK", "1"},
                                        {"MASTER_ADDR", "127.0.0.1"},
                                        {"MASTER_PORT", "4711"},
                                        {"ADDR", "tcp://127.0.0.1:4711 $(LATER) $(HOME)"},
                                        {"LATER", "x"}};
  EXPECT_EQ(process().value().env, expected);
}

TEST_F(LocalProcessTest, the_downward_api_tells_about_this_machine) {
  Json env = Json::array();
  for (const char* path :
       {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "status.podIP",
        "metadata.labels['l']", "metadata.annotations['none']"}) {
    env.push_back({{"name", path}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}});
  }
  set_env(env);
  std::string values;
  const ProcessSpec spec = process().value();
  for (const EnvVar& variable : spec.env) {
    if (variable.name.find('.') != std::string::npos) values += variable.value + " ";
  }
  EXPECT_EQ(values, "p ns u box 127.0.0.1 v  ");
}

TEST_F(LocalProcessTest, mounts_become_folders_in_command_variables_and_working_folder) {
  pod["spec"]["volumes"] = {
      {{"name", "host"}, {"hostPath", {{"path", "/srv"}}}},
      {{"name", "empty"}, {"emptyDir", Json::object()}},
      {{"name", "claim"}, {"persistentVolumeClaim", {{"claimName", "disk"}}}}};
  container()["volumeMounts"] = {{{"name", "host"}, {"mountPath", "/data/"}},
                                 {{"name", "empty"}, {"mountPath", "/scratch"}},
                                 {{"name", "claim"}, {"mountPath", "/save"}, {"subPath", "a"}}};
  container()["command"] = {"/data/run", "--out=/scratch/x"};
  container()["args"] = {"/save"};
  container()["workingDir"] = "/data/work";
  set_env({{{"name", "WHERE"}, {"value", "/scratch"}}});
  const ProcessSpec spec = process().value();
  EXPECT_EQ(spec.argv, (std::vector<std::string>{"/srv/run", "--out=/out/volumes/p/empty/x",
                                                 "/out/volumes/claims/disk/a"}));
  EXPECT_EQ(spec.env.back(), (EnvVar{"WHERE", "/out/volumes/p/empty"}));
  EXPECT_EQ(spec.working_folder, "/srv/work");
  EXPECT_EQ(spec.folders_to_make,
            (std::vector<std::string>{"/out/volumes/p/empty", "/out/volumes/claims/disk/a"}));
}

TEST_F(LocalProcessTest, a_volume_can_not_leave_the_folder_of_the_volumes) {
  const auto error_with = [&](const Json& volume, const Json& sub_path) {
    pod["spec"]["volumes"] = Json::array({volume});
    container()["volumeMounts"] = {
        {{"name", volume["name"]}, {"mountPath", "/v"}, {"subPath", sub_path}}};
    return error();
  };
  const Json scratch{{"name", "v"}, {"emptyDir", Json::object()}};
  for (const char* name : {"..", ".", "", "a/b", "/etc", "../x"}) {
    EXPECT_EQ(error_with({{"name", name}, {"emptyDir", Json::object()}}, ""),
              "volume " + std::string(name) + ": \"" + name + "\" can't be the name of a folder");
    EXPECT_EQ(error_with({{"name", "v"}, {"persistentVolumeClaim", {{"claimName", name}}}}, ""),
              "volume v: \"" + std::string(name) + "\" can't be the name of a folder");
  }
  for (const char* path : {"..", "/etc", "a/..", "../a", "a/../../b"}) {
    EXPECT_EQ(error_with(scratch, path), "volumeMount v: its subPath is \"" + std::string(path) +
                                             "\"; it must be relative, without \"..\"");
  }
  for (const char* path : {"", "a", "a/b", "..a", "a..", "./a"})
    EXPECT_EQ(error_with(scratch, path), "no error") << path;
}

TEST_F(LocalProcessTest, a_container_has_a_name_that_its_log_can_have) {
  for (const char* name : {"", "..", "a/b", "/a"}) {
    container()["name"] = name;
    EXPECT_EQ(error(),
              "container " + std::string(name) + ": \"" + name + "\" can't be the name of a file");
  }
}

TEST_F(LocalProcessTest, what_no_process_can_have_is_refused_with_the_reason) {
  container().erase("command");
  EXPECT_EQ(
      error(),
      "container c: it has no command: here is no image whose entrypoint could run; set command");
  container()["command"] = {"run", 5};
  EXPECT_EQ(error(), "container c: command must be a list of texts; 5 is none");
  container()["command"] = {"run"};
  set_env({{{"name", "A"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}}}}}}});
  EXPECT_EQ(error(),
            "env A: its value comes from secretKeyRef, which local processes do not have; give a "
            "value, or a fieldRef");
  set_env({{{"name", "A"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nope"}}}}}}});
  EXPECT_EQ(error(),
            "fieldRef: \"spec.nope\" is no field of a pod that can be read into a variable");
  set_env(Json::array());
  container()["volumeMounts"] = {{{"name", "v"}, {"mountPath", "/v"}}};
  EXPECT_EQ(error(), "volumeMount v: there is no volume of that name in spec.volumes");
  pod["spec"]["volumes"] = {{{"name", "v"}, {"configMap", {{"name", "m"}}}}};
  EXPECT_EQ(error(),
            "volume v: local processes have emptyDir, hostPath and persistentVolumeClaim only; it "
            "is none of them");
}

}  // namespace
}  // namespace tj
