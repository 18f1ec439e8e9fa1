#include "trainer/launch/statement_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "trainer/launch/host.h"

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using testing::HasSubstr;

StatementRequest request(int port, const Statement& mine) {
  return {.mine = mine,
          .master = {"127.0.0.1", port},
          .timeout = milliseconds(20'000),
          .quiet = milliseconds(20'000)};
}

/// All of them at the same time, each in a thread.
std::vector<Result<WorldDecision>> exchange_all(const std::vector<StatementRequest>& requests) {
  std::vector<std::future<Result<WorldDecision>>> running;
  for (const auto& request : requests) {
    running.push_back(
        std::async(std::launch::async, [&request] { return exchange_statements(request); }));
  }
  std::vector<Result<WorldDecision>> results;
  for (auto& one : running) results.push_back(one.get());
  return results;
}

TEST(StatementExchange, four_launchers_on_two_nodes_learn_that_each_is_one_process) {
  const int port = free_port().value();
  std::vector<StatementRequest> requests;
  for (int rank : {2, 3, 0, 1}) {
    const std::string node = rank < 2 ? "a" : "b";
    requests.push_back(
        request(port, {.world_size = 4, .rank = rank, .gpus = 2, .machine = node, .node = node}));
  }
  const auto results = exchange_all(requests);
  for (std::size_t at = 0; at < results.size(); ++at) {
    ASSERT_TRUE(results[at]) << describe(results[at].error());
    EXPECT_EQ(results[at]->meaning, WorldMeaning::processes);
    EXPECT_EQ(results[at]->local_rank, requests[at].mine.rank % 2);
  }
  EXPECT_TRUE(ListeningSocket::open(port)) << "the port must be free for the processes";
}

TEST(StatementExchange, two_launchers_of_two_nodes_are_workers) {
  const int port = free_port().value();
  const auto results = exchange_all(
      {request(port, {.world_size = 2, .rank = 0, .gpus = 2, .machine = "a", .node = "a"}),
       request(port, {.world_size = 2, .rank = 1, .gpus = 2, .machine = "b", .node = "b"})});
  for (const auto& result : results) {
    ASSERT_TRUE(result) << describe(result.error());
    EXPECT_EQ(result->meaning, WorldMeaning::workers);
  }
}

TEST(StatementExchange,
     two_launchers_that_fill_the_world_with_gpus_wait_for_others_before_they_go_on) {
  const int port = free_port().value();
  std::vector<StatementRequest> requests{
      request(port, {.world_size = 4, .rank = 0, .gpus = 2, .machine = "a", .node = "a"}),
      request(port, {.world_size = 4, .rank = 2, .gpus = 2, .machine = "b", .node = "b"})};
  for (auto& one : requests) one.quiet = milliseconds(300);
  const auto begun = std::chrono::steady_clock::now();
  for (const auto& result : exchange_all(requests)) {
    ASSERT_TRUE(result) << describe(result.error());
    EXPECT_EQ(result->meaning, WorldMeaning::nodes);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(300));
}

TEST(StatementExchange, a_contradiction_reaches_all_with_all_statements_named) {
  const int port = free_port().value();
  const auto results = exchange_all(
      {request(port, {.world_size = 4, .rank = 0, .gpus = 2, .machine = "a", .node = "a"}),
       request(port, {.world_size = 4, .rank = 1, .gpus = 4, .machine = "b", .node = "b"})});
  for (const auto& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::invalid);
    EXPECT_THAT(result.error().message,
                HasSubstr("rank 0 of 4 on node a (2 GPUs), rank 1 of 4 on node b (4 GPUs)"));
  }
}

TEST(StatementExchange, at_the_deadline_it_is_said_who_came) {
  auto mine = request(free_port().value(),
                      {.world_size = 4, .rank = 0, .gpus = 2, .machine = "a", .node = "a"});
  mine.timeout = milliseconds(300);
  const auto result = exchange_statements(mine);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("1 launchers came"));
  EXPECT_THAT(result.error().message, HasSubstr("rank 0 of 4 on node a (2 GPUs)"));
}

TEST(StatementExchange, without_rank_0_the_place_is_named) {
  const int port = free_port().value();
  auto mine = request(port, {.world_size = 4, .rank = 1, .gpus = 2, .machine = "a", .node = "a"});
  mine.timeout = milliseconds(100);
  const auto result = exchange_statements(mine);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::timeout);
  EXPECT_THAT(result.error().message,
              HasSubstr("nobody answers at 127.0.0.1:" + std::to_string(port)));
}

TEST(StatementExchange, a_request_to_stop_ends_the_wait) {
  auto mine = request(free_port().value(),
                      {.world_size = 4, .rank = 0, .gpus = 2, .machine = "a", .node = "a"});
  int looks = 0;
  mine.is_asked_to_stop = [&] { return ++looks > 3; };
  const auto result = exchange_statements(mine);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::unavailable);
}

TEST(StatementExchange, a_stranger_at_the_port_does_no_harm) {
  const int port = free_port().value();
  auto first = request(port, {.world_size = 2, .rank = 0, .gpus = 2, .machine = "a", .node = "a"});
  auto waiting = std::async(std::launch::async, [&] { return exchange_statements(first); });
  const Deadline deadline = std::chrono::steady_clock::now() + milliseconds(10'000);
  ASSERT_TRUE(wait_until_listening({"127.0.0.1", port}, deadline));
  const auto stranger = connect_to({"127.0.0.1", port}, deadline);
  ASSERT_TRUE(stranger);
  const std::string words = "GET / HTTP/1.1\n\n";
  ASSERT_GT(::send(*stranger, words.data(), words.size(), MSG_NOSIGNAL), 0);
  const auto second = exchange_statements(
      request(port, {.world_size = 2, .rank = 1, .gpus = 2, .machine = "b", .node = "b"}));
  ::close(*stranger);
  ASSERT_TRUE(second) << describe(second.error());
  EXPECT_EQ(second->meaning, WorldMeaning::workers);
  EXPECT_TRUE(waiting.get());
}

TEST(StatementExchange, a_statement_survives_the_wire_and_nonsense_does_not) {
  const Statement statement{
      .world_size = 16, .rank = 3, .gpus = 8, .machine = "node/host/pid:[1]", .node = "node a"};
  const std::string line = statement_line(statement);
  EXPECT_EQ(statement_from_line(line.substr(0, line.size() - 1)), statement);
  for (const char* text : {"", "GET / HTTP/1.1", "trainingjob-claim-1\t2\t-1\t2\ta\tb",
                           "trainingjob-claim-1\t2\t1\t2\ta", "trainingjob-claim-2\t2\t1\t2\ta\tb"})
    EXPECT_FALSE(statement_from_line(text)) << text;
}

}  // namespace
}  // namespace tj::trainer
