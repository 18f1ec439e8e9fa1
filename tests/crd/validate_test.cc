// validate.cc against the table that the CRD is held to, and what that table can't say.
#include "operator/api/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "contract/launch_env.h"
#include "operator/api/json.h"
#include "operator/api/words.h"
#include "tests/crd/case_file.h"
#include "tests/places.h"

namespace tj {
namespace {

using nlohmann::json;

class ValidateTable : public testing::TestWithParam<CaseFile> {};

TEST_P(ValidateTable, says_what_the_file_expects) {
  const CaseFile& file = GetParam();
  if (!file.reading.is_null()) {
    const auto to_field = "/spec/replicaSpecs/Worker/template/spec/fieldOfTheFuture"_json_pointer;
    EXPECT_EQ(file.manifest.at(to_field), file.reading) << "kubectl reads it so";
  }
  const auto errors = validate_manifest(file.manifest);
  EXPECT_EQ(errors.size(), file.expectations.size()) << describe(errors);
  for (const auto& expected : file.expectations) {
    const auto found = std::find_if(errors.begin(), errors.end(), [&](const FieldError& error) {
      return error.field == expected.field &&
             error.message.find(expected.says) != std::string::npos;
    });
    EXPECT_NE(found, errors.end())
        << "wanted " << expected.field << ": " << expected.says << "\ngot    " << describe(errors);
  }
}

INSTANTIATE_TEST_SUITE_P(manifests, ValidateTable, testing::ValuesIn(read_case_files()),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

json job_with_env(const std::string& list, const std::string& variable) {
  json container = {{"name", "main"}, {"image", "none"}};
  json pod_spec = {{"containers", json::array({container})}};
  container["env"] = json::array({{{"name", variable}, {"value", "x"}}});
  pod_spec[list] = json::array({container});
  return {{"replicaSpecs", {{"Worker", {{"replicas", 2}, {"template", {{"spec", pod_spec}}}}}}}};
}

TEST(Validate, each_reserved_variable_is_refused_in_each_list_of_containers) {
  for (const auto reserved : reserved_env_names()) {
    for (const std::string list : {"containers", "initContainers"}) {
      const auto errors = validate_spec("job", job_with_env(list, std::string(reserved)));
      ASSERT_EQ(errors.size(), 1U) << reserved << " in " << list;
      EXPECT_EQ(errors[0].field,
                "spec.replicaSpecs.Worker.template.spec." + list + "[0].env[0].name");
    }
  }
}

TEST(Validate, the_template_has_the_right_types_where_the_operator_reads_or_adds) {
  const std::string terms =
      "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
  struct Row {
    std::string place;
    json value;
    std::string says;
  };
  const std::vector<Row> table = {
      {"/tolerations", "x", "is \"x\"; it must be a list of tolerations"},
      {"/tolerations", {"x"}, "[0]: is \"x\"; it must be an object"},
      {"/tolerations", {{{"key", 5}}}, "[0].key: is 5; it must be a text"},
      {"/affinity", json::array(), "is a list; it must be an object"},
      {"/affinity/nodeAffinity", 5, "is 5; it must be an object"},
      {terms, json::object(), "is an object; it must be a list of terms"},
      {terms, {5}, "[0]: is 5; it must be an object"},
      {terms, {{{"matchFields", {"x"}}}}, "[0].matchFields[0]: is \"x\"; it must be an object"},
      {"/containers/0/resources", {"x"}, "is a list; it must be an object"},
      {"/containers/0/resources/limits", 5, "is 5; it must be an object"},
      {"/containers/0/resources/limits/nvidia.com~1gpu", {8}, "a list; it must be a quantity"}};
  const json good = job_with_env("containers", "A");
  const json::json_pointer to_pod("/replicaSpecs/Worker/template/spec");
  ASSERT_TRUE(validate_spec("job", good).empty());
  for (const auto& [place, value, says] : table) {
    json spec = good;
    spec[to_pod / json::json_pointer(place)] = value;
    const auto errors = validate_spec("job", spec);
    ASSERT_EQ(errors.size(), 1U) << place << ": " << describe(errors);
    EXPECT_NE(describe(errors[0]).find(says), std::string::npos) << describe(errors[0]);
  }
}

TEST(Validate, no_template_is_nested_without_end) {
  json deep = json::array();
  for (int level = 0; level < 80; ++level) deep = json::array({std::move(deep)});
  json spec = job_with_env("containers", "A");
  spec["replicaSpecs"]["Worker"]["template"]["spec"]["volumes"] = deep;
  const auto errors = validate_spec("job", spec);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(describe(errors[0]),
            "spec.replicaSpecs.Worker.template: has lists and objects in more than 64 levels; no "
            "pod has");
}

TEST(Validate, the_crd_reserves_the_names_of_the_contract) {
  const json crd = read_yaml(source_dir() + "/manifests/crd/trainingjobs.yaml");
  const std::string to_pod_spec =
      "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicaSpecs/properties/"
      "Worker/properties/"
      "template/properties/spec/properties/";
  for (const std::string list : {"containers", "initContainers"}) {
    const json::json_pointer to_rule(
        to_pod_spec + list +
        "/items/properties/env/items/properties/name/x-kubernetes-validations/0/rule");
    const std::string rule = crd.at(to_rule);
    for (const auto reserved : reserved_env_names()) {
      EXPECT_NE(rule.find("'" + std::string(reserved) + "'"), std::string::npos) << reserved;
    }
    EXPECT_EQ(static_cast<std::size_t>(std::count(rule.begin(), rule.end(), '\'')),
              2 * reserved_env_names().size());
  }
}

/// Paths of `value` that `schema` does not declare: the server would drop them.
std::vector<std::string> undeclared(const json& value, const json& schema,
                                    const std::string& path) {
  std::vector<std::string> paths;
  const auto add = [&](const std::vector<std::string>& more) {
    paths.insert(paths.end(), more.begin(), more.end());
  };
  if (value.is_array()) {
    for (const json& entry : value) add(undeclared(entry, schema.at("items"), path + "[]"));
  }
  if (value.is_object()) {
    for (const auto& [name, field] : value.items()) {
      const json::json_pointer to_field = json::json_pointer("/properties") / name;
      if (!schema.contains(to_field)) {
        paths.push_back(path + "." + name);
      } else {
        add(undeclared(field, schema.at(to_field), path + "." + name));
      }
    }
  }
  return paths;
}

TEST(Validate, the_crd_declares_each_field_that_the_operator_writes_into_the_status) {
  const TimePoint now{};
  const JobStatus status{
      .attempt_start_time = now,
      .running_time = now,
      .node_failures = {NodeFailures{.node = "n", .count = 1}},
      .excluded_nodes = {"n"},
      .troubled_ranks = {TroubledRank{.rank = 1}},
      .start_time = now,
      .completion_time = now,
      .first_failure = FirstFailure{.exit_code = 137, .finished_at = now},
      .conditions = {Condition{.type = "Failed", .last_transition_time = now}},
  };
  const json written = status_patch(TrainingJob{}, status).at("status");
  const json crd = read_yaml(source_dir() + "/manifests/crd/trainingjobs.yaml");
  const json& schema =
      crd.at("/spec/versions/0/schema/openAPIV3Schema/properties/status"_json_pointer);
  EXPECT_EQ(undeclared(written, schema, "status"), std::vector<std::string>{});
  EXPECT_EQ(undeclared({{"conditions", {{{"typo", 1}}}}}, schema, "status"),
            std::vector<std::string>{"status.conditions[].typo"});
}

const json& crd_schema(const json& crd, const std::string& to_field) {
  return crd.at(
      json::json_pointer("/spec/versions/0/schema/openAPIV3Schema/properties" + to_field));
}

TEST(Validate, the_crd_has_the_phases_of_the_operator) {
  const json crd = read_yaml(source_dir() + "/manifests/crd/trainingjobs.yaml");
  EXPECT_EQ(crd_schema(crd, "/status/properties/phase/enum"), json(kTexts<Phase>));
}

/// `value` with the defaults of the schema in place of what is left out, also of whole objects.
json with_defaults(json value, const json& schema) {
  if (!value.is_object() || !schema.contains("properties")) return value;
  for (const auto& [name, field] : schema.at("properties").items()) {
    if (name == "template") continue;  // Kubernetes' own
    if (!value.contains(name) && field.contains("default")) value[name] = field["default"];
    if (!value.contains(name) && field.contains("properties")) value[name] = json::object();
    if (value.contains(name)) value[name] = with_defaults(value[name], field);
  }
  return value;
}

TEST(Validate, the_operator_has_the_defaults_of_the_crd) {
  const json crd = read_yaml(source_dir() + "/manifests/crd/trainingjobs.yaml");
  json bare = {{"metadata", {{"name", "job"}}}, {"spec", job_with_env("containers", "A")}};
  bare["spec"]["replicaSpecs"]["Worker"].erase("replicas");
  json full = bare;
  json& spec = full["spec"];
  spec = with_defaults(spec, crd_schema(crd, "/spec"));
  const auto from_bare = job_from_json(bare);
  const auto from_full = job_from_json(full);
  ASSERT_TRUE(from_bare && from_full);
  EXPECT_EQ(from_full->spec_error, std::nullopt);
  EXPECT_EQ(from_full->spec, from_bare->spec);
}

TEST(Validate, each_example_is_valid) {
  int example_count = 0;
  const std::filesystem::path folder = std::filesystem::path(source_dir()) / "manifests/examples";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    for (const json& document : read_yaml_documents(entry.path())) {
      if (document.value("kind", "") == "ConfigMap") continue;
      EXPECT_EQ(describe(validate_manifest(document)), "") << entry.path();
      ++example_count;
    }
  }
  EXPECT_GE(example_count, 3);
}

TEST(Validate, the_operator_ignores_fields_that_a_newer_version_may_have) {
  json spec = job_with_env("containers", "A");
  spec["elasticPolicy"] = {{"minReplicas", 1}};
  spec["runPolicy"]["color"] = "red";
  spec["failurePolicy"]["rules"] = {{{"action", "Fail"}, {"exitCodes", {3}}, {"color", "red"}}};
  spec["replicaSpecs"]["Worker"]["color"] = "red";
  EXPECT_EQ(describe(validate_spec("job", spec)), "");
}

TEST(Validate, the_operator_refuses_an_action_that_a_newer_version_may_have) {
  json spec = job_with_env("containers", "A");
  spec["failurePolicy"]["rules"] = {{{"action", "RestartRack"}, {"exitCodes", {3}}}};
  const auto errors = validate_spec("job", spec);
  ASSERT_EQ(errors.size(), 1U) << describe(errors);
  EXPECT_EQ(errors[0].field, "spec.failurePolicy.rules[0].action");
}

TEST(Validate, lists_have_a_largest_size) {
  json spec = job_with_env("containers", "A");
  json& container = spec["replicaSpecs"]["Worker"]["template"]["spec"]["containers"][0];
  container["env"] = json(1025, {{"name", "A"}});
  EXPECT_EQ(describe(validate_spec("job", spec)),
            "spec.replicaSpecs.Worker.template.spec.containers[0].env: has 1025 entries; it must "
            "have at most 1024");
  container["env"] = json::array();
  json& containers = spec["replicaSpecs"]["Worker"]["template"]["spec"]["containers"];
  containers = json(65, container);
  EXPECT_EQ(
      describe(validate_spec("job", spec)),
      "spec.replicaSpecs.Worker.template.spec.containers: has 65 entries; it must have at most 64");
}

TEST(Validate, what_is_no_object_at_all_is_refused) {
  for (const json& manifest : {json(nullptr), json("apiVersion"), json::array({1}), json(7)}) {
    const auto errors = validate_manifest(manifest);
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_NE(describe(errors).find("it must be a TrainingJob object"), std::string::npos)
        << describe(errors);
  }
}

TEST(Validate, a_long_value_is_cut_and_stays_readable) {
  json spec = job_with_env("containers", "A");
  std::string value;
  for (int i = 0; i < 100; ++i) value += "\xc3\xa4";  // two bytes each: a cut may not split one
  spec["replicaSpecs"]["Worker"]["replicas"] = value;
  const std::string text = describe(validate_spec("job", spec));
  EXPECT_LT(text.size(), 200U);
  EXPECT_NO_THROW(static_cast<void>(json(text).dump())) << text;
}

}  // namespace
}  // namespace tj
