// Stories of pods that become real, small shell processes. Waits are conditions with a deadline.
#include "operator/local/process_runner.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <fstream>

#include "contract/names.h"

namespace tj {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::chrono::seconds kDeadline{20};

/// A process that is gone, or a zombie that only waits to be reaped.
bool has_ended(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return true;
  const auto name_end = text.rfind(')');
  return name_end == std::string::npos || text[name_end + 2] == 'Z' || text[name_end + 2] == 'X';
}

struct ProcessRunnerTest : testing::Test {
  boost::asio::io_context loop;
  fs::path folder = fs::path(testing::TempDir()) / ("runner-" + std::to_string(getpid()));
  MemoryApi api{[this](auto work) { boost::asio::post(loop, work); }, clock(), {}};
  std::vector<std::string> lines;
  std::vector<std::string> notes;
  std::unique_ptr<ProcessRunner> runner;

  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder);
    start_runner(std::nullopt);
  }
  void TearDown() override {
    runner.reset();
    fs::remove_all(folder);
  }
  static ObjectStore::Clock clock() {
    return [] {
      return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    };
  }
  void start_runner(std::optional<std::chrono::seconds> grace) {
    runner = std::make_unique<ProcessRunner>(
        loop, api,
        RunnerOptions{
            .run_folder = folder,
            .manifest_folder = folder,
            .node_name = "box",
            .machine_env = {{"PATH", "/usr/bin:/bin"}},
            .grace = grace,
            .now = clock(),
            .on_line =
                [this](const PodName& pod, std::string_view line) {
                  lines.push_back(pod.name + ": " + std::string(line));
                },
            .on_note = [this](const PodName& pod,
                              const std::string& note) { notes.push_back(pod.name + ": " + note); },
            .on_change = [] {}});
  }
  Json shell_pod(const std::string& name, const std::string& script) {
    return {{"metadata",
             {{"name", name},
              {"labels", {{names::kLabelWorkerIndex, "0"}, {names::kLabelAttempt, "0"}}}}},
            {"spec",
             {{"containers",
               Json::array(
                   {{{"name", "training"}, {"image", "i"}, {"command", {"sh", "-c", script}}}})}}}};
  }
  void create(const Json& pod) {
    ASSERT_TRUE(api.objects().create(Resource::pods, "default", pod).ok());
  }
  Json status(const std::string& name) {
    return api.objects().get(Resource::pods, {"default", name}).value()["status"];
  }
  Json main_state(const std::string& name) { return status(name)["containerStatuses"][0]["state"]; }
  /// Turns the loop until `done`; fails the test at the deadline.
  void run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      loop.restart();
      loop.run_one_for(std::chrono::milliseconds{50});
    }
    ASSERT_TRUE(done()) << "not within the deadline";
  }
  void run_to_end(const Json& pod) {
    create(pod);
    run_until(
        [&] { return status(pod["metadata"]["name"])["phase"] != "Pending" && runner->idle(); });
  }
  int number_in(const std::string& file) {
    int number = -1;
    std::ifstream(folder / file) >> number;
    return number;
  }
};

TEST_F(ProcessRunnerTest, a_pod_lives_as_under_a_kubelet) {
  std::vector<std::string> phases;
  const auto tap = api.subscribe(Resource::pods, [&](const ObjectChange& change) {
    const std::string phase = (*change.object)["status"]["phase"];
    if (phases.empty() || phases.back() != phase) phases.push_back(phase);
  });
  run_to_end(shell_pod("a", "echo out; echo err >&2; printf last"));
  run_until([&] { return phases.size() == 3; });
  EXPECT_EQ(phases, (std::vector<std::string>{"Pending", "Running", "Succeeded"}));
  EXPECT_EQ(lines, (std::vector<std::string>{"a: out", "a: err", "a: last"}));
  const Json terminated = main_state("a")["terminated"];
  EXPECT_EQ(terminated["exitCode"], 0);
  EXPECT_EQ(terminated["reason"], "Completed");
  EXPECT_TRUE(parse_time(terminated["startedAt"]).has_value());
  EXPECT_TRUE(parse_time(terminated["finishedAt"]).has_value());
  EXPECT_EQ(status("a")["podIP"], "127.0.0.1");
  EXPECT_EQ(api.objects().get(Resource::pods, {"default", "a"}).value()["spec"]["nodeName"], "box");
  std::ifstream log(folder / "a.log");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(log), {}), "out\nerr\nlast");
}

TEST_F(ProcessRunnerTest, exit_codes_signals_and_last_words_reach_the_status) {
  run_to_end(shell_pod("a", "printf 'the cause' > $TRAININGJOB_TERMINATION_LOG; exit 3"));
  EXPECT_EQ(main_state("a")["terminated"]["exitCode"], 3);
  EXPECT_EQ(main_state("a")["terminated"]["reason"], "Error");
  EXPECT_EQ(main_state("a")["terminated"]["message"], "the cause");
  EXPECT_EQ(status("a")["phase"], "Failed");
  run_to_end(shell_pod("b", "kill -KILL $$$$"));
  EXPECT_EQ(main_state("b")["terminated"]["exitCode"], 137);
  Json talkative = shell_pod("c", "echo one; echo two; exit 1");
  talkative["spec"]["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError";
  run_to_end(talkative);
  EXPECT_EQ(main_state("c")["terminated"]["message"], "one\ntwo\n");
  run_to_end(shell_pod("d", "head -c 9999 /dev/zero | tr '\\0' x > $TRAININGJOB_TERMINATION_LOG"));
  EXPECT_EQ(main_state("d")["terminated"]["message"].get<std::string>().size(), 4096u);
}

TEST_F(ProcessRunnerTest, a_deleted_pod_gets_sigterm_and_goes_when_its_process_has_ended) {
  create(shell_pod("a",
                   "trap 'echo stopping; exit 75' TERM; echo up; while :; do read x < /dev/zero & "
                   "wait $!; done"));
  run_until([&] { return !lines.empty(); });
  ASSERT_TRUE(api.objects().remove(Resource::pods, {"default", "a"}).ok());
  run_until([&] { return runner->idle(); });
  EXPECT_EQ(lines.back(), "a: stopping");
  EXPECT_FALSE(api.objects().get(Resource::pods, {"default", "a"}).ok());
  ASSERT_EQ(runner->reports().size(), 1u);
  EXPECT_TRUE(runner->reports()[0].stopped);
  EXPECT_EQ(runner->reports()[0].exit->exit_code, 75);
}

TEST_F(ProcessRunnerTest, a_process_that_ignores_sigterm_is_killed_after_its_grace) {
  start_runner(std::chrono::seconds{0});
  create(shell_pod("a", "trap '' TERM; echo up; while :; do tail -f /dev/null; done"));
  run_until([&] { return !lines.empty(); });
  ASSERT_TRUE(api.objects().remove(Resource::pods, {"default", "a"}).ok());
  run_until([&] { return runner->idle(); });
  EXPECT_EQ(notes, (std::vector<std::string>{"a: did not end within 0 s of SIGTERM: killed"}));
  EXPECT_EQ(runner->reports()[0].exit->exit_code, 137);
}

TEST_F(ProcessRunnerTest, what_a_process_leaves_behind_ends_with_it) {
  run_to_end(shell_pod(
      "a",
      "tail -f /dev/null & echo $! > child; "
      "setsid sh -c 'echo $$$$ > escaped.new; mv escaped.new escaped; exec tail -f /dev/null' & "
      "until test -e escaped; do :; done"));
  EXPECT_GT(number_in("child"), 0);
  EXPECT_TRUE(has_ended(number_in("child")));
  EXPECT_GT(number_in("escaped"), 0);
  EXPECT_TRUE(has_ended(number_in("escaped"))) << "its own session does not save it";
}

TEST_F(ProcessRunnerTest, the_end_of_the_runner_ends_everything) {
  create(shell_pod("a", "tail -f /dev/null & echo $! > child; echo up; wait"));
  run_until([&] { return !lines.empty(); });
  runner.reset();
  EXPECT_TRUE(has_ended(number_in("child")));
}

TEST_F(ProcessRunnerTest, the_death_of_the_parent_ends_everything) {
  const pid_t parent = fork();
  if (parent == 0) {
    boost::asio::io_context own_loop;
    const ChildCommand command{
        .program = "/bin/sh",
        .argv = {"sh", "-c", "echo $$ > pid.new; mv pid.new pid; while :; do :; done"},
        .env = {{"PATH", "/usr/bin:/bin"}},
        .working_folder = folder.string()};
    const auto child =
        ChildProcess::start(own_loop, command, {[](auto) {}, [](auto) {}, [](const auto&) {}});
    while (!fs::exists(folder / "pid")) own_loop.poll();
    kill(getpid(), SIGKILL);
  }
  run_until([&] { return fs::exists(folder / "pid") && has_ended(number_in("pid")); });
  waitpid(parent, nullptr, 0);
}

TEST_F(ProcessRunnerTest, a_command_that_does_not_exist_fails_with_127_and_says_so) {
  Json pod = shell_pod("a", "");
  pod["spec"]["containers"][0]["command"] = {"no-such-program"};
  run_to_end(pod);
  EXPECT_EQ(main_state("a")["terminated"]["exitCode"], 127);
  EXPECT_EQ(main_state("a")["terminated"]["reason"], "StartError");
  EXPECT_EQ(main_state("a")["terminated"]["message"],
            "command not found: \"no-such-program\" is in no folder of PATH");
  pod = shell_pod("b", "");
  pod["spec"]["containers"][0]["command"] = {"./missing"};
  run_to_end(pod);
  EXPECT_EQ(main_state("b")["terminated"]["message"],
            "command not found: \"./missing\" (working folder " + folder.string() + ")");
  std::ofstream(folder / "plain") << "text";
  pod = shell_pod("c", "");
  pod["spec"]["containers"][0]["command"] = {"./plain"};
  run_to_end(pod);
  EXPECT_EQ(main_state("c")["terminated"]["exitCode"], 126);
  EXPECT_EQ(main_state("c")["terminated"]["message"],
            "cannot start \"./plain\": Permission denied");
}

TEST_F(ProcessRunnerTest, init_containers_run_first_and_their_failure_is_the_pods) {
  Json pod = shell_pod("a", "echo main");
  pod["spec"]["initContainers"] = {{{"name", "one"}, {"image", "i"}, {"command", {"echo", "one"}}},
                                   {{"name", "two"}, {"image", "i"}, {"command", {"echo", "two"}}}};
  run_to_end(pod);
  EXPECT_EQ(lines, (std::vector<std::string>{"a: one", "a: two", "a: main"}));
  EXPECT_EQ(status("a")["phase"], "Succeeded");
  pod["metadata"]["name"] = "b";
  pod["spec"]["initContainers"][0]["command"] = {"sh", "-c", "exit 9"};
  run_to_end(pod);
  EXPECT_EQ(lines.size(), 3u) << "nothing after the failure has run";
  EXPECT_EQ(status("b")["phase"], "Failed");
  EXPECT_EQ(status("b")["initContainerStatuses"][0]["state"]["terminated"]["exitCode"], 9);
}

TEST_F(ProcessRunnerTest, one_job_and_attempt_have_one_port) {
  Json pod = shell_pod("a", "echo $MASTER_PORT");
  pod["metadata"]["ownerReferences"] = Json::array({{{"kind", "Other"}, {"uid", "job-1"}}});
  pod["spec"]["containers"][0]["env"] = {{{"name", "MASTER_PORT"}, {"value", "29500"}}};
  run_to_end(pod);
  pod["metadata"]["name"] = "b";
  run_to_end(pod);
  pod["metadata"]["name"] = "c";
  pod["metadata"]["labels"][names::kLabelAttempt] = "1";
  run_to_end(pod);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].substr(3), lines[1].substr(3));
  EXPECT_NE(lines[0].substr(3), lines[2].substr(3));
  EXPECT_GE(std::stoi(lines[0].substr(3)), 1024);
  EXPECT_TRUE(fs::exists(folder / "c.attempt-1.log"));
}

TEST_F(ProcessRunnerTest, the_log_of_an_earlier_run_is_kept) {
  std::ofstream(folder / "a.log") << "earlier\n";
  run_to_end(shell_pod("a", "echo now"));
  std::string line;
  std::getline(std::ifstream(folder / "a.previous.log") >> std::ws, line);
  EXPECT_EQ(line, "earlier");
}

TEST_F(ProcessRunnerTest, an_empty_dir_is_empty_and_what_it_held_is_set_aside) {
  Json pod = shell_pod("a", "ls /scratch; echo $RANDOM > /scratch/file");
  pod["spec"]["volumes"] = {{{"name", "scratch"}, {"emptyDir", Json::object()}}};
  pod["spec"]["containers"][0]["volumeMounts"] = {{{"name", "scratch"}, {"mountPath", "/scratch"}}};
  run_to_end(pod);
  ASSERT_TRUE(api.objects().remove(Resource::pods, {"default", "a"}).ok());
  run_to_end(pod);
  EXPECT_TRUE(lines.empty()) << lines.front();
  EXPECT_TRUE(fs::exists(folder / "volumes/a/scratch/file"));
  EXPECT_TRUE(fs::exists(folder / "volumes/a.previous/scratch/file"));
}

TEST_F(ProcessRunnerTest, a_link_that_an_earlier_run_left_does_not_lead_out_of_the_volumes) {
  fs::create_directories(folder / "volumes/claims/disk");
  fs::create_directories(folder / "elsewhere");
  fs::create_directory_symlink(folder / "elsewhere", folder / "volumes/claims/disk/link");
  Json pod = shell_pod("a", "echo ran");
  pod["spec"]["volumes"] = {{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", "disk"}}}}};
  pod["spec"]["containers"][0]["volumeMounts"] = {
      {{"name", "v"}, {"mountPath", "/v"}, {"subPath", "link/new"}}};
  run_to_end(pod);
  EXPECT_EQ(lines, std::vector<std::string>{});
  EXPECT_FALSE(fs::exists(folder / "elsewhere/new"));
  EXPECT_NE(status("a").dump().find("a link on the way leads to"), std::string::npos)
      << status("a");
}

TEST_F(ProcessRunnerTest, last_words_of_any_bytes_become_text) {
  const auto last_words = [&](const std::string& name, const std::string& script) {
    Json pod = shell_pod(name, script);
    pod["spec"]["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError";
    run_to_end(pod);
    const Json message = main_state(name)["terminated"]["message"];
    EXPECT_NO_THROW((void)message.dump());
    return message.get<std::string>();
  };
  const std::string unknown = "\xef\xbf\xbd";
  EXPECT_EQ(last_words("latin", "printf '\\351\\377'; exit 3"), unknown + unknown);
  const std::string to_file = "printf 'r\\351s' > $TRAININGJOB_TERMINATION_LOG; exit 3";
  EXPECT_EQ(last_words("file", to_file), "r" + unknown + "s");
  // 2,048 bytes from the end lie within a character.
  std::string text;
  for (int i = 0; i < 1'024; ++i) text += "\xc3\xa9";
  EXPECT_EQ(last_words("cut", "printf '" + text + text + "x'; exit 3"), text.substr(2) + "x");
}

TEST_F(ProcessRunnerTest, a_line_without_end_is_told_in_pieces) {
  run_to_end(shell_pod("a", "head -c 150000 /dev/zero | tr '\\0' x; echo; printf 'cr\\r\\n'"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].size(), kLineBytesMax + 3);
  EXPECT_EQ(lines[3], "a: cr");
}

}  // namespace
}  // namespace tj
