// Local runs as other processes find them: the registry with its locks, the objects in a folder,
// and the session over both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "cli/commands/commands.h"
#include "cli/jobs/change.h"
#include "cli/jobs/requests.h"
#include "cli/jobs/show.h"
#include "cli/local/local_session.h"
#include "cli/local/run_keeper.h"
#include "tests/cli/job_world.h"
#include "tests/temporary_folder.h"

namespace tj {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;

json stored(json object, const std::string& uid) {
  object["metadata"]["namespace"] = "default";
  object["metadata"]["uid"] = uid;
  return object;
}

class LocalRuns : public testing::Test {
 protected:
  /// A folder with the objects of one job.
  fs::path folder_of(const std::string& folder, const std::string& job, const json& status) {
    json object = stored(job_json(job), "uid-of-" + folder);
    object["status"] = status;
    const auto written = write_run_objects(root_ / folder, {.jobs = {object}});
    EXPECT_TRUE(written.ok());
    return root_ / folder;
  }
  RunRegistration started(const std::string& job, const fs::path& folder) {
    auto made = RunRegistration::make({.job = job, .ns = "default", .folder = folder}, registry_);
    TJ_CHECK(made.ok(), describe(made.error()));
    return *std::move(made);
  }

  const TemporaryFolder kept_;
  const fs::path root_ = kept_.path();
  const fs::path registry_ = root_ / "state" / "runs";
};

TEST_F(LocalRuns, a_run_lives_as_long_as_its_lock) {
  const fs::path folder = folder_of("a", "mnist", running_status());
  {
    const RunRegistration run = started("mnist", folder);
    const auto seen = find_run("mnist", registry_);
    ASSERT_TRUE(seen);
    EXPECT_TRUE(seen->is_alive);
    EXPECT_EQ(seen->pid, getpid());
    EXPECT_EQ(seen->folder, folder);
    forget_run(*seen, registry_);  // does nothing to one that lives
  }
  const auto ended = find_run("mnist", registry_);
  ASSERT_TRUE(ended);
  EXPECT_FALSE(ended->is_alive);
  forget_run(*ended, registry_);
  EXPECT_FALSE(find_run("mnist", registry_));
}

TEST_F(LocalRuns, a_folder_has_one_run_at_a_time) {
  const fs::path folder = folder_of("a", "mnist", running_status());
  const RunRegistration first = started("mnist", folder);
  const auto second =
      RunRegistration::make({.job = "mnist", .ns = "default", .folder = folder}, registry_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::conflict);
}

TEST_F(LocalRuns, stale_ones_are_dropped_when_another_begins) {
  const fs::path gone = folder_of("gone", "old", running_status());
  { const RunRegistration run = started("old", gone); }
  fs::remove_all(gone);
  EXPECT_TRUE(list_runs(registry_).empty());
  for (std::size_t i = 0; i < kRunsMax + 3; ++i) {
    const std::string name = "j" + std::to_string(i);
    const RunRegistration run = started(name, folder_of(name, name, running_status()));
  }
  const auto entries = std::distance(fs::directory_iterator(registry_), fs::directory_iterator());
  EXPECT_LE(entries, static_cast<std::ptrdiff_t>(kRunsMax + 1));
}

TEST_F(LocalRuns, what_is_no_file_of_ours_is_passed_over) {
  fs::create_directories(registry_);
  std::ofstream(registry_ / "a.json") << "{\"job\": 1";
  std::ofstream(registry_ / "b.json") << "[]";
  fs::create_directory(registry_ / "c.json");
  EXPECT_TRUE(list_runs(registry_).empty());
  EXPECT_EQ(read_run_objects(root_).error().code, Code::not_found);
  std::ofstream(root_ / kObjectsFile) << "no json";
  EXPECT_EQ(read_run_objects(root_).error().code, Code::invalid);
  std::ofstream(root_ / kObjectsFile)
      << R"({"jobs": [1, {}, {"metadata": {"name": "x"}}], "pods": 7})";
  EXPECT_EQ(read_run_objects(root_).value(), RunObjects{});
}

TEST_F(LocalRuns, of_one_name_the_one_that_lives_is_shown) {
  const fs::path first = folder_of("first", "mnist", running_status());
  const fs::path second =
      folder_of("second", "mnist", ended_status("Failed", "WorkerFailed", "no"));
  const RunRegistration lives = started("mnist", first);
  { const RunRegistration ended = started("mnist", second); }
  auto local = open_local_session("mnist", registry_);
  ASSERT_TRUE(local.ok());
  ASSERT_EQ(local->runs.size(), 1U);
  EXPECT_EQ(local->runs[0].folder, first);
  const auto job = get_job(*local->session, "mnist");
  EXPECT_EQ(job.value()["status"]["phase"], "Running");
  EXPECT_EQ(open_local_session("other", registry_).error().code, Code::not_found);
}

TEST_F(LocalRuns, commands_read_them) {
  { const RunRegistration run = started("cut-off", folder_of("a", "cut-off", running_status())); }
  const RunRegistration run =
      started("done", folder_of("b", "done", ended_status("Succeeded", "WorkersSucceeded", "")));
  const auto place = Place::local(registry_);
  ASSERT_TRUE(place.ok());
  const Told table = told([&] { return list(**place, {}); });
  EXPECT_THAT(table.out, HasSubstr("cut-off  Interrupted  2/2"));
  EXPECT_THAT(table.out, HasSubstr("done     Succeeded"));
  const StatusOptions follow{.job = "cut-off", .watch = true};
  EXPECT_EQ(told([&] { return show_status(**place, follow); }).code, tj_exit::kFailed);
  const Told missing = told([&] { return show_status(**place, {.job = "cut-of"}); });
  EXPECT_EQ(missing.code, tj_exit::kNotFound);
  EXPECT_THAT(missing.err, HasSubstr("did you mean cut-off?"));
}

TEST_F(LocalRuns, the_log_of_a_pod_has_the_name_that_tj_run_gives) {
  EXPECT_EQ(run_log_file("/o", "a-worker-0", 0), "/o/a-worker-0.log");
  EXPECT_EQ(run_log_file("/o", "a-worker-0", 2), "/o/a-worker-0.attempt-2.log");
  EXPECT_EQ(run_log_file("/o", "a-worker-0", 0, "fetch"), "/o/a-worker-0.fetch.log");
}

/// A process that is the `tj run` of a folder until it is told to end.
class OtherProcess {
 public:
  OtherProcess(const fs::path& folder, const fs::path& registry) {
    int pipe_ends[2];
    TJ_CHECK(pipe(pipe_ends) == 0, "pipe");
    pid_ = fork();
    if (pid_ == 0) {
      const auto run =
          RunRegistration::make({.job = "mnist", .ns = "default", .folder = folder}, registry);
      const char word = run ? 'y' : 'n';
      if (write(pipe_ends[1], &word, 1) != 1) _exit(2);
      while (true) ::pause();
    }
    char word = 'n';
    TJ_CHECK(read(pipe_ends[0], &word, 1) == 1 && word == 'y', "the other process");
    close(pipe_ends[0]);
    close(pipe_ends[1]);
  }
  ~OtherProcess() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  /// The signal that it ended by.
  int signal() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

 private:
  pid_t pid_ = -1;
};

TEST_F(LocalRuns, a_deletion_ends_the_process_and_forgets_the_run) {
  const fs::path folder = folder_of("a", "mnist", running_status());
  OtherProcess other(folder, registry_);
  const auto place = Place::local(registry_);
  ASSERT_TRUE(place.ok());
  const Told seen = told([&] { return delete_jobs(**place, {.jobs = {"mnist"}}); });
  EXPECT_EQ(seen.code, 0) << seen.err;
  EXPECT_EQ(seen.out,
            "trainingjob.kubebrain.io/mnist deleted; its files stay in " + folder.string() + "\n");
  EXPECT_EQ(other.signal(), SIGTERM);
  EXPECT_FALSE(find_run("mnist", registry_));
  EXPECT_TRUE(fs::exists(folder / kObjectsFile));
}

TEST_F(LocalRuns, no_process_is_ended_that_is_another_one) {
  const fs::path folder = folder_of("a", "mnist", running_status());
  OtherProcess other(folder, registry_);
  RunEntry run = *find_run("mnist", registry_);
  run.process_start += 1;
  EXPECT_EQ(end_run(run, seconds{1}, registry_).error().code, Code::forbidden);
  run = *find_run("mnist", registry_);
  run.host = "another-machine";
  EXPECT_EQ(end_run(run, seconds{1}, registry_).error().code, Code::forbidden);
  EXPECT_TRUE(find_run("mnist", registry_)->is_alive);
}

TEST_F(LocalRuns, one_that_has_ended_needs_no_signal) {
  const fs::path folder = folder_of("a", "mnist", running_status());
  { const RunRegistration run = started("mnist", folder); }
  EXPECT_EQ(end_run(*find_run("mnist", registry_), seconds{1}, registry_).error().code,
            Code::not_found);
}

TEST_F(LocalRuns, takes_no_changes) {
  const RunRegistration run = started("mnist", folder_of("a", "mnist", running_status()));
  const auto place = Place::local(registry_);
  const Told seen = told([&] { return set_suspended(**place, "mnist", true, ""); });
  EXPECT_EQ(seen.code, tj_exit::kWrongInput);
  EXPECT_EQ(seen.err,
            "tj: mnist: a local run can't be changed: end it (tj delete --local) and start another "
            "one\n");
}

TEST_F(LocalRuns, a_keeper_writes_what_changes_and_keeps_what_ends_with_the_run) {
  boost::asio::io_context loop;
  MemoryApi api([&](std::function<void()> work) { boost::asio::post(loop, std::move(work)); },
                [] { return TimePoint{}; });
  RunKeeper keeper(loop, api, root_ / "out");
  ASSERT_TRUE(api.objects().create(Resource::training_jobs, "default", job_json("mnist")).ok());
  loop.poll();
  EXPECT_EQ(read_run_objects(root_ / "out").value().jobs.size(), 1U);  // the first, at once
  ASSERT_TRUE(api.objects().create(Resource::training_jobs, "default", job_json("brief")).ok());
  ASSERT_TRUE(api.objects().remove(Resource::training_jobs, {"default", "brief"}).ok());
  loop.run();  // until nothing waits any more: it has been written
  EXPECT_EQ(read_run_objects(root_ / "out").value().jobs.size(), 1U);
  keeper.keep_deleted();
  ASSERT_TRUE(api.objects().remove(Resource::training_jobs, {"default", "mnist"}).ok());
  loop.restart();
  loop.run();
  ASSERT_TRUE(keeper.finish().ok());
  const RunObjects kept = read_run_objects(root_ / "out").value();
  ASSERT_EQ(kept.jobs.size(), 1U);
  EXPECT_EQ(kept.jobs[0]["metadata"]["name"], "mnist");
}

TEST_F(LocalRuns, a_keeper_has_a_bound_on_events) {
  boost::asio::io_context loop;
  MemoryApi api([&](std::function<void()> work) { boost::asio::post(loop, std::move(work)); },
                [] { return TimePoint{}; });
  RunKeeper keeper(loop, api, root_ / "out");
  for (std::size_t i = 0; i < RunKeeper::kEventsMax + 5; ++i) {
    const json event{{"metadata", {{"name", "e" + std::to_string(i)}}}};
    ASSERT_TRUE(api.objects().create(Resource::events, "default", event).ok());
  }
  loop.run();
  const RunObjects kept = read_run_objects(root_ / "out").value();
  EXPECT_EQ(kept.events.size(), RunKeeper::kEventsMax);
}

}  // namespace
}  // namespace tj
