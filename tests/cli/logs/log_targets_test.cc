// Which containers have a log, by the state of their pods, and what a person may ask for.
#include "cli/logs/log_targets.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tj {
namespace {
using nlohmann::json;

json pod(int rank, int attempt, const json& state, const std::string& phase = "Running") {
  const std::string name = "a-worker-" + std::to_string(rank);
  return {{"metadata",
           {{"name", name},
            {"uid", name + "-" + std::to_string(attempt)},
            {"labels",
             {{"kubebrain.io/trainingjob", "a"},
              {"kubebrain.io/worker-index", std::to_string(rank)},
              {"kubebrain.io/attempt", std::to_string(attempt)}}}}},
          {"spec",
           {{"initContainers", json::array({{{"name", "prepare"}}})},
            {"containers", json::array({{{"name", "main"}}, {{"name", "sidecar"}}})}}},
          {"status",
           {{"phase", phase},
            {"containerStatuses",
             json::array({{{"name", "sidecar"}, {"state", {{"running", json::object()}}}},
                          {{"name", "main"}, {"restartCount", 0}, {"state", state}}})}}}};
}

std::string text_of(const std::vector<LogTarget>& targets) {
  std::string text;
  for (const LogTarget& target : targets) {
    text += target.pod + "/" + target.container + (target.has_started ? " started" : "") +
            (target.has_ended ? " ended" : "") + "; ";
  }
  return text;
}

TEST(LogTargets, a_container_has_a_log_once_it_has_started) {
  const std::vector<json> pods = {
      pod(2, 0, {{"terminated", {{"exitCode", 1}}}}, "Failed"),
      pod(0, 0, {{"running", json::object()}}),
      pod(1, 0, {{"waiting", {{"reason", "ContainerCreating"}}}}, "Pending")};
  EXPECT_EQ(text_of(log_targets(pods, {})),
            "a-worker-0/main started; a-worker-1/main; a-worker-2/main started ended; ");
}

TEST(LogTargets, are_of_the_ranks_attempt_and_container_that_were_asked_for) {
  const json running{{"running", json::object()}};
  const std::vector<json> pods = {pod(0, 0, running), pod(1, 0, running), pod(0, 1, running)};
  EXPECT_EQ(
      text_of(log_targets(pods, {.ranks = RankSet::parse("1"), .attempt = {}, .container = {}})),
      "a-worker-1/main started; ");
  EXPECT_EQ(log_targets(pods, {.ranks = {}, .attempt = 1, .container = {}}).size(), 1U);
  EXPECT_EQ(text_of(log_targets({pods[0]}, {.ranks = {}, .attempt = {}, .container = "sidecar"})),
            "a-worker-0/sidecar started; ");
  EXPECT_EQ(text_of(log_targets({pods[0]}, {.ranks = {}, .attempt = {}, .container = "prepare"})),
            "a-worker-0/prepare; ");
}

TEST(LogTargets, another_run_of_a_container_is_another_log) {
  json first = pod(0, 0, {{"running", json::object()}});
  json second = first;
  second["status"]["containerStatuses"][1]["restartCount"] = 1;
  EXPECT_NE(log_targets({first}, {}).front().identity(),
            log_targets({second}, {}).front().identity());
}

TEST(LogTargets, what_is_no_worker_of_a_job_has_none) {
  EXPECT_TRUE(log_targets({json::object(),
                           json("text"),
                           json(nullptr),
                           {{"metadata", {{"name", "x"}}}, {"status", 7}}},
                          {})
                  .empty());
}

TEST(LogTargets, a_container_that_is_not_there_is_answered_with_those_that_are) {
  const std::vector<json> pods = {pod(0, 0, json::object())};
  EXPECT_TRUE(check_container(pods, "sidecar").ok());
  EXPECT_TRUE(check_container(pods, "").ok());
  EXPECT_EQ(describe(check_container(pods, "trainer").error()),
            "--container: the workers have no container \"trainer\"; it must be one of main, "
            "prepare, sidecar");
}

TEST(LogTargets, ranks_are_read_in_any_order) {
  EXPECT_EQ(parse_ranks("0,7-9")->text(), "0,7-9");
  EXPECT_EQ(parse_ranks("9,0-2,1")->text(), "0-2,9");
  EXPECT_EQ(parse_ranks("5-5")->text(), "5");
  for (const char* wrong : {"", "a", "1,", "3-1", "-1", "1-", "0,,1", "10000", "1 2"})
    EXPECT_FALSE(parse_ranks(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace tj
