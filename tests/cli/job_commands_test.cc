// The commands about jobs, against an API server in memory: what they ask, say and exit with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands/commands.h"
#include "cli/jobs/change.h"
#include "cli/jobs/requests.h"
#include "cli/jobs/show.h"
#include "cli/jobs/wait_for.h"
#include "operator/api/read.h"
#include "operator/loop/controller.h"
#include "operator/loop/metrics.h"
#include "operator/plan/manifest.h"
#include "tests/cli/job_world.h"

namespace tj {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr FollowPace kQuick{.every = std::chrono::milliseconds{1},
                            .outage_max = std::chrono::seconds{5}};

Error forbidden() {
  return {Code::forbidden, "User \"eve\" cannot list resource", "trainingjobs", {}};
}
Error unavailable() { return {Code::unavailable, "connection refused", "https://x", {}}; }

TEST(JobName, is_read_with_and_without_its_kind) {
  for (const char* text :
       {"mnist", "trainingjob/mnist", "tj/mnist", "trainingjobs.kubebrain.io/mnist"})
    EXPECT_EQ(job_name_of(text).value(), "mnist");
  for (const char* text : {"", "pod/mnist", "a/b/c", "../x", "Mnist", "a b", "a%2fb"})
    EXPECT_EQ(job_name_of(text).error().code, Code::invalid) << text;
}

TEST(NearNames, are_those_of_few_changes_or_that_hold_it) {
  const std::vector<std::string> names = {"mnist", "mnist-2", "cifar", "minst", "gpt2-nano"};
  EXPECT_EQ(near_names("mnits", names), (std::vector<std::string>{"mnist"}));
  EXPECT_EQ(near_names("mnst", names), (std::vector<std::string>{"minst", "mnist"}));
  EXPECT_EQ(near_names("nano", names), (std::vector<std::string>{"gpt2-nano"}));
  EXPECT_TRUE(near_names("xyz", names).empty());
}

TEST(ListCommand, shows_a_namespace_and_says_when_it_is_empty) {
  JobWorld world;
  EXPECT_EQ(told([&] { return list(world.place(), {}); }).out,
            "no TrainingJobs in the namespace default\n");
  world.add_job("b", running_status());
  world.add_job("a", running_status());
  const Told names = told([&] { return list(world.place(), {.output = "name"}); });
  EXPECT_EQ(names.out, "trainingjob.kubebrain.io/a\ntrainingjob.kubebrain.io/b\n");
  const Told table = told([&] { return list(world.place(), {}); });
  EXPECT_THAT(table.out,
              HasSubstr("a     Running  2/2    -         0        0         WorkersRunning"));
  EXPECT_EQ(table.code, 0);
  const json all = json::parse(told([&] { return list(world.place(), {.output = "json"}); }).out);
  EXPECT_EQ(all["kind"], "List");
  EXPECT_EQ(all["items"][1]["metadata"]["name"], "b");
  EXPECT_EQ(all["items"][1]["kind"], "TrainingJob");
  EXPECT_THAT(told([&] { return list(world.place(), {.output = "yaml"}); }).out,
              HasSubstr("kind: List"));
}

TEST(ListCommand, without_a_terminal_a_watch_prints_what_has_changed) {
  JobWorld world;
  world.add_job("a", running_status());
  world.add_job("b", running_status());
  world.before_request([&](const Request&, int number) -> std::optional<Error> {
    if (number == 3) world.set_status("b", ended_status("Succeeded", "WorkersSucceeded", "done"));
    return number == 5 ? std::optional(forbidden()) : std::nullopt;
  });
  const Told seen = told([&] { return list(world.place(), {.watch = true, .pace = kQuick}); });
  EXPECT_EQ(seen.code, tj_exit::kRefused);
  EXPECT_THAT(seen.out, testing::MatchesRegex(
                            "NAME +PHASE.*\na +Running.*\nb +Running.*\nb +Succeeded[^\n]*\n"));
  EXPECT_EQ(list(world.place(), {.watch = true, .output = "json"}), tj_exit::kWrongInput);
}

TEST(ListCommand, names_the_right_that_is_missing) {
  JobWorld world;
  world.before_request([](const Request&, int) { return std::optional(forbidden()); });
  const Told refused = told([&] { return list(world.place(), {.all_namespaces = true}); });
  EXPECT_EQ(refused.code, tj_exit::kRefused);
  EXPECT_THAT(refused.err,
              HasSubstr("you may not list trainingjobs in all namespaces; the right that is "
                        "missing: {apiGroups: [\"kubebrain.io\"], resources: [trainingjobs], "
                        "verbs: [list]}. The server says: User \"eve\" cannot list resource"));
}

TEST(StatusCommand, says_which_name_may_have_been_meant) {
  JobWorld world;
  world.add_job("mnist", running_status());
  const Told missing = told([&] { return show_status(world.place(), {.job = "mnits"}); });
  EXPECT_EQ(missing.code, tj_exit::kNotFound);
  EXPECT_EQ(missing.err,
            "tj: mnits: there is no TrainingJob of this name in the namespace default; did you "
            "mean mnist?\n");
}

TEST(StatusCommand, shows_the_job_and_its_own_pods) {
  JobWorld world;
  world.add_job("mnist", running_status());
  world.add_pod("mnist", 1, pod_running());
  world.add_pod("mnist", 0, {{"phase", "Pending"}});
  const Told seen = told([&] { return show_status(world.place(), {.job = "trainingjob/mnist"}); });
  EXPECT_EQ(seen.code, 0);
  EXPECT_THAT(seen.out, HasSubstr("nodes       2: node-0, node-1\n"));
  EXPECT_THAT(seen.out, HasSubstr("0     Pending  no     0        node-0"));
  EXPECT_THAT(seen.out, HasSubstr("1     Running  yes    0        node-1"));
  const Told yaml =
      told([&] { return show_status(world.place(), {.job = "mnist", .output = "yaml"}); });
  EXPECT_THAT(yaml.out, HasSubstr("name: mnist"));
}

TEST(StatusCommand, shows_the_job_to_who_may_not_list_pods) {
  JobWorld world;
  world.add_job("mnist", running_status());
  world.before_request([](const Request& request, int) {
    return request.resource == Resource::pods ? std::optional(forbidden()) : std::nullopt;
  });
  EXPECT_EQ(told([&] { return show_status(world.place(), {.job = "mnist"}); }).code, 0);
}

TEST(StatusCommand, a_watch_ends_with_the_job_and_says_how) {
  const std::pair<std::string, int> kEnds[] = {{"Succeeded", 0}, {"Failed", 1}};
  for (const auto& end : kEnds) {
    JobWorld world;
    world.add_job("mnist", running_status());
    world.before_request([&](const Request& request, int number) -> std::optional<Error> {
      if (number == 5) world.set_status("mnist", ended_status(end.first, "Because", "it is over"));
      const bool is_cut = number == 3 && request.resource == Resource::training_jobs;
      return is_cut ? std::optional(unavailable()) : std::nullopt;
    });
    const Told seen = told([&] {
      return show_status(world.place(), {.job = "mnist", .watch = true, .pace = kQuick});
    });
    EXPECT_EQ(seen.code, end.second) << seen.err;
    EXPECT_THAT(seen.out, HasSubstr("job mnist: Running (2/2 ready), attempt 0\n"));
    EXPECT_THAT(seen.out, HasSubstr("job mnist: " + end.first));
    EXPECT_THAT(seen.err, HasSubstr("connection refused"));  // and it went on
  }
}

TEST(StatusCommand, a_watch_of_a_job_that_is_deleted_ends) {
  JobWorld world;
  world.add_job("mnist", running_status());
  world.before_request([&](const Request&, int number) -> std::optional<Error> {
    if (number == 3) (void)world.objects().remove(Resource::training_jobs, {"default", "mnist"});
    return std::nullopt;
  });
  const Told seen = told(
      [&] { return show_status(world.place(), {.job = "mnist", .watch = true, .pace = kQuick}); });
  EXPECT_EQ(seen.code, tj_exit::kNotFound);
}

TEST(StatusCommand, a_watch_gives_up_on_a_server_that_is_away_for_long) {
  JobWorld world;
  world.before_request([](const Request&, int) { return std::optional(unavailable()); });
  const FollowPace pace{.every = std::chrono::milliseconds{1},
                        .outage_max = std::chrono::seconds{0}};
  const Told seen = told(
      [&] { return show_status(world.place(), {.job = "mnist", .watch = true, .pace = pace}); });
  EXPECT_EQ(seen.code, tj_exit::kUnreachable);
}

TEST(EventsCommand, are_those_of_the_job_and_its_pods) {
  JobWorld world;
  world.add_job("mnist", running_status());
  const std::string uid = world.job("mnist")["metadata"]["uid"];
  const auto event = [&](const std::string& name, const json& about) {
    const json object{
        {"metadata", {{"name", name}}},
        {"involvedObject", about},
        {"reason", name},
        {"lastTimestamp", format_time(std::chrono::floor<std::chrono::milliseconds>(
                              std::chrono::system_clock::now() + std::chrono::seconds{5}))}};
    ASSERT_TRUE(world.objects().create(Resource::events, "default", object).ok());
  };
  event("ours", {{"kind", "TrainingJob"}, {"name", "mnist"}, {"uid", uid}});
  event("pods", {{"kind", "Pod"}, {"name", "mnist-worker-1"}});
  event("earlier", {{"kind", "TrainingJob"}, {"name", "mnist"}, {"uid", "another"}});
  event("other", {{"kind", "Pod"}, {"name", "mnist-worker-1x"}});
  const Told seen = told([&] { return show_events(world.place(), "mnist", ""); });
  EXPECT_THAT(seen.out, HasSubstr("ours"));
  EXPECT_THAT(seen.out, HasSubstr("pods"));
  EXPECT_THAT(seen.out, Not(HasSubstr("earlier")));
  EXPECT_THAT(seen.out, Not(HasSubstr("other")));
}

TEST(SuspendCommand, asks_once_and_says_what_was) {
  JobWorld world;
  world.add_job("mnist", running_status());
  const auto suspend = [&](bool suspended) {
    return told([&] { return set_suspended(world.place(), "mnist", suspended, ""); });
  };
  EXPECT_EQ(suspend(true).out, "trainingjob.kubebrain.io/mnist suspended\n");
  EXPECT_EQ(world.job("mnist")["spec"]["runPolicy"]["suspend"], true);
  EXPECT_EQ(suspend(true).out,
            "trainingjob.kubebrain.io/mnist unchanged: it was suspended before\n");
  EXPECT_EQ(suspend(false).out, "trainingjob.kubebrain.io/mnist resumed\n");
  world.set_status("mnist", ended_status("Succeeded", "WorkersSucceeded", ""));
  const Told late = suspend(true);
  EXPECT_EQ(late.code, tj_exit::kFailed);
  EXPECT_EQ(late.err, "tj: mnist: has ended (Succeeded), and there is nothing to suspend\n");
}

TEST(ScaleCommand, changes_the_number_of_workers) {
  JobWorld world;
  world.add_job("mnist", running_status());
  EXPECT_EQ(told([&] { return scale_job(world.place(), "mnist", 4, ""); }).out,
            "trainingjob.kubebrain.io/mnist scaled from 2 to 4 workers: a new attempt begins\n");
  EXPECT_EQ(world.job("mnist")["spec"]["replicaSpecs"]["Worker"]["replicas"], 4);
}

TEST(RestartCommand, makes_other_pods_in_two_updates_and_leaves_the_rest) {
  JobWorld world;
  world.add_job("mnist", running_status());
  const TrainingJob before = job_from_json(world.job("mnist")).value();
  const Told seen = told([&] { return restart_job(world.place(), "mnist", ""); });
  EXPECT_EQ(seen.out, "trainingjob.kubebrain.io/mnist restarted: a new attempt begins\n");
  const TrainingJob after = job_from_json(world.job("mnist")).value();
  EXPECT_FALSE(after.spec.run.suspend);
  EXPECT_NE(template_hash(after.spec), template_hash(before.spec));
  EXPECT_EQ(after.spec.worker_count, before.spec.worker_count);
  EXPECT_EQ(world.api().request_log(),
            (std::vector<std::string>{"get trainingjobs.kubebrain.io default/mnist",
                                      "patch trainingjobs.kubebrain.io default/mnist",
                                      "patch trainingjobs.kubebrain.io default/mnist"}));
}

TEST(RestartCommand, gives_way_to_a_write_that_was_before) {
  JobWorld world;
  world.add_job("mnist", running_status());
  world.before_request([&](const Request&, int number) -> std::optional<Error> {
    if (number == 2) world.set_status("mnist", {{"message", "news"}});
    return std::nullopt;
  });
  EXPECT_EQ(told([&] { return restart_job(world.place(), "mnist", ""); }).code, 0);
}

TEST(RestartCommand, says_that_the_job_is_suspended_when_it_can_not_resume_it) {
  JobWorld world;
  world.add_job("mnist", running_status());
  world.before_request([](const Request&, int number) {
    return number == 3 ? std::optional(forbidden()) : std::nullopt;
  });
  const Told seen = told([&] { return restart_job(world.place(), "mnist", ""); });
  EXPECT_EQ(seen.code, tj_exit::kRefused);
  EXPECT_THAT(seen.err, HasSubstr("mnist: it is suspended now; tj resume mnist goes on\n"));
}

TEST(RestartCommand, is_for_jobs_that_run) {
  JobWorld world;
  world.add_job("done", ended_status("Failed", "WorkerFailed", ""));
  world.add_job("held", running_status());
  EXPECT_THAT(told([&] { return restart_job(world.place(), "done", ""); }).err,
              HasSubstr("has ended (Failed), and stays so: delete it and submit it again"));
  (void)told([&] { return set_suspended(world.place(), "held", true, ""); });
  EXPECT_THAT(told([&] { return restart_job(world.place(), "held", ""); }).err,
              HasSubstr("is suspended: tj resume begins a new attempt"));
}

/// A kubelet that runs each pod at once and lets each go that is asked to.
void play_kubelet(ObjectStore& objects, const ObjectChange& change) {
  const json& pod = *change.object;
  const ObjectKey key = key_of(pod);
  if (change.type == ChangeType::added) {
    (void)objects.bind_pod(key, "node");
    (void)objects.patch_status(Resource::pods, key, {{"status", pod_running()}});
  } else if (change.type == ChangeType::modified && pod["metadata"].contains("deletionTimestamp")) {
    (void)objects.finish_delete(key, pod["metadata"]["uid"]);
  }
}

TEST(RestartCommand, is_a_new_attempt_to_the_operator_and_no_failure) {
  JobWorld world;
  Metrics metrics;
  const auto kubelet = world.api().subscribe(
      Resource::pods, [&](const ObjectChange& change) { play_kubelet(world.objects(), change); });
  Controller controller(
      world.place().session().loop(), world.api(), metrics, {.now = [] {
        return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
      }});
  controller.start();
  ASSERT_TRUE(world.objects().create(Resource::training_jobs, "default", job_json("mnist")).ok());
  const WaitOptions running{.job = "mnist",
                            .goal = {.kind = WaitGoal::Kind::phase, .phase = Phase::running},
                            .timeout = std::chrono::seconds{60},
                            .pace = kQuick};
  ASSERT_EQ(told([&] { return wait_for(world.place(), running); }).code, 0);
  ASSERT_EQ(told([&] { return restart_job(world.place(), "mnist", ""); }).code, 0);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  JobStatus status;
  while (std::chrono::steady_clock::now() < until &&
         (status.attempt == 0 || status.phase != Phase::running))
    status = job_from_json(get_job(world.place().session(), "mnist").value()).value().status;
  EXPECT_EQ(status.phase, Phase::running);
  EXPECT_EQ(status.attempt, 1);
  EXPECT_EQ(status.restarts, 0);
  EXPECT_FALSE(status.first_failure);
}

TEST(DeleteCommand, waits_until_job_and_pods_are_gone) {
  JobWorld world;
  world.add_job("mnist", running_status());
  world.add_pod("mnist", 0, pod_running());
  const std::string uid =
      world.objects().get(Resource::pods, {"default", "mnist-worker-0"}).value()["metadata"]["uid"];
  world.before_request([&](const Request&, int number) -> std::optional<Error> {
    if (number == 8) (void)world.objects().finish_delete({"default", "mnist-worker-0"}, uid);
    return std::nullopt;
  });
  const Told seen =
      told([&] { return delete_jobs(world.place(), {.jobs = {"mnist"}, .pace = kQuick}); });
  EXPECT_EQ(seen.code, 0) << seen.err;
  EXPECT_EQ(seen.out, "trainingjob.kubebrain.io/mnist deleted\n");
  EXPECT_TRUE(world.objects().objects(Resource::pods).empty());
}

TEST(DeleteCommand, ends_when_its_time_is_over) {
  JobWorld world;
  world.add_job("mnist", running_status());
  world.add_pod("mnist", 0, pod_running());
  const Told seen = told([&] {
    return delete_jobs(world.place(),
                       {.jobs = {"mnist"}, .timeout = std::chrono::seconds{0}, .pace = kQuick});
  });
  EXPECT_EQ(seen.code, tj_exit::kTimedOut);
  EXPECT_THAT(seen.err, HasSubstr("mnist: is not gone within 0 s"));
}

TEST(DeleteCommand, goes_on_after_a_name_that_is_not_there) {
  JobWorld world;
  world.add_job("b", running_status());
  const Told seen = told([&] {
    return delete_jobs(world.place(), {.jobs = {"a1234", "b"}, .pace = kQuick});
  });
  EXPECT_EQ(seen.code, tj_exit::kNotFound);
  EXPECT_EQ(seen.out, "trainingjob.kubebrain.io/b deleted\n");
}

TEST(WaitGoal, is_read_whatever_its_case) {
  EXPECT_EQ(parse_wait_goal("").value(), WaitGoal{});
  EXPECT_EQ(parse_wait_goal("phase=running").value(),
            (WaitGoal{.kind = WaitGoal::Kind::phase, .phase = Phase::running}));
  EXPECT_EQ(
      parse_wait_goal("condition=Suspended=false").value(),
      (WaitGoal{
          .kind = WaitGoal::Kind::condition, .condition = "Suspended", .condition_status = false}));
  EXPECT_EQ(parse_wait_goal("DELETE").value().kind, WaitGoal::Kind::deletion);
  for (const char* wrong :
       {"running", "phase=", "phase=Runing", "condition=Ready", "condition=Failed=maybe"})
    EXPECT_EQ(parse_wait_goal(wrong).error().code, Code::invalid) << wrong;
}

TEST(WaitGoal, a_time_is_read_with_its_units) {
  const std::pair<const char*, long long> kGood[] = {
      {"90", 90}, {"90s", 90}, {"5m", 300}, {"1h30m", 5400}, {"1m1s", 61}};
  for (const auto& [text, count] : kGood) EXPECT_EQ(parse_duration(text).value().count(), count);
  for (const char* wrong : {"", "0", "-1", "s", "5x", "1.5h", "99999999999999999999s", "9000h"})
    EXPECT_FALSE(parse_duration(wrong).ok()) << wrong;
}

TEST(WaitGoal, is_judged_by_the_job) {
  JobView view;
  const auto verdict = [&](Phase phase, const std::string& goal) {
    view.job.status.phase = phase;
    return judge_wait(parse_wait_goal(goal).value(), view);
  };
  EXPECT_EQ(verdict(Phase::running, ""), WaitVerdict::not_yet);
  EXPECT_EQ(verdict(Phase::succeeded, ""), WaitVerdict::reached);
  EXPECT_EQ(verdict(Phase::failed, ""), WaitVerdict::never);
  EXPECT_EQ(verdict(Phase::failed, "phase=Failed"), WaitVerdict::reached);
  EXPECT_EQ(verdict(Phase::succeeded, "phase=Running"), WaitVerdict::reached);
  EXPECT_EQ(verdict(Phase::failed, "phase=Running"), WaitVerdict::never);
  EXPECT_EQ(verdict(Phase::suspended, "phase=Running"), WaitVerdict::not_yet);
  view.job.status.conditions = {{.type = "Suspended", .status = true}};
  EXPECT_EQ(verdict(Phase::suspended, "condition=Suspended"), WaitVerdict::reached);
  EXPECT_EQ(verdict(Phase::suspended, "condition=Suspended=False"), WaitVerdict::not_yet);
}

TEST(WaitCommand, sees_the_world_move) {
  JobWorld world;
  world.add_job("mnist", ended_status("Pending", "CreatingWorkers", ""));
  world.before_request([&](const Request&, int number) -> std::optional<Error> {
    if (number == 3) return unavailable();
    if (number == 4) world.set_status("mnist", running_status());
    if (number == 6) world.set_status("mnist", ended_status("Failed", "WorkerFailed", "rank 1"));
    return std::nullopt;
  });
  WaitOptions options{
      .job = "mnist", .goal = parse_wait_goal("phase=Running").value(), .pace = kQuick};
  EXPECT_EQ(told([&] { return wait_for(world.place(), options); }).code, 0);
  options.goal = WaitGoal{};
  const Told failed = told([&] { return wait_for(world.place(), options); });
  EXPECT_EQ(failed.code, tj_exit::kFailed);
  EXPECT_EQ(failed.out, "job mnist: Failed, attempt 0: rank 1\n");
}

TEST(WaitCommand, has_a_time_and_exit_code_124) {
  JobWorld world;
  world.add_job("mnist", running_status());
  const WaitOptions options{.job = "mnist", .timeout = std::chrono::seconds{0}, .pace = kQuick};
  const Told late = told([&] { return wait_for(world.place(), options); });
  EXPECT_EQ(late.code, tj_exit::kTimedOut);
  EXPECT_EQ(late.err, "tj: mnist: not within 0 s; job mnist: Running (2/2 ready), attempt 0\n");
}

TEST(WaitCommand, for_a_deletion_ends_when_the_job_is_gone) {
  JobWorld world;
  world.add_job("mnist", running_status());
  world.before_request([&](const Request&, int number) -> std::optional<Error> {
    if (number == 2) (void)world.objects().remove(Resource::training_jobs, {"default", "mnist"});
    return std::nullopt;
  });
  const WaitOptions options{
      .job = "mnist", .goal = {.kind = WaitGoal::Kind::deletion}, .pace = kQuick};
  EXPECT_EQ(told([&] { return wait_for(world.place(), options); }).code, 0);
}

}  // namespace
}  // namespace tj
