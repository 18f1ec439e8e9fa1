#include "trainer/watch/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

Sign sign(int rank, Seen seen, double silent_seconds = 0.2) {
  return {.rank = rank,
          .node = std::string(1, static_cast<char>('a' + rank)),
          .seen = std::move(seen),
          .silent_seconds = silent_seconds};
}

Seen waiting(double seconds, std::int64_t collectives = 77) {
  return {.phase = Phase::step,
          .still_seconds = seconds,
          .step = 12,
          .collectives = collectives,
          .collective = "all-reduce",
          .is_in_collective = true};
}

Seen working(double seconds, Phase phase = Phase::step) {
  return {.phase = phase,
          .still_seconds = seconds,
          .step = 12,
          .collectives = 76,
          .collective = "all-reduce"};
}

Seen of_phase(Phase phase, Seen seen) {
  seen.phase = phase;
  return seen;
}

Seen after(Seen seen, std::int64_t collectives) {
  seen.collectives = collectives;
  return seen;
}

Seen made(std::int64_t gradients, Seen seen) {
  seen.gradients = gradients;
  return seen;
}

Seen exchanging(double seconds) {
  Seen seen = working(seconds);
  seen.waits_for = "exchange";
  return seen;
}

Seen on_gpu(std::int64_t begun, std::int64_t ended, Seen seen) {
  seen.device = {.begun = begun, .ended = ended};
  return seen;
}

struct Case {
  const char* name;
  std::vector<Sign> signs;
  const char* sentence;  // empty: nobody is accused
};

class Judge : public testing::TestWithParam<Case> {};

TEST_P(Judge, says) {
  const auto accused = judge(GetParam().signs, Limits{});
  EXPECT_EQ(accused ? accused->sentence : "", GetParam().sentence);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Judge,
    testing::Values(
        Case{"all_move", {sign(0, working(1)), sign(1, waiting(1))}, ""},
        Case{"silent",
             {sign(0, waiting(9)), sign(1, working(0.1), 8.4)},
             "rank 1 on node b is frozen or unreachable: no sign of life for 8 s (limit silence=8 "
             "s), last seen in phase step after step 12, after all-reduce no. 76"},
        Case{"two_silent",
             {sign(0, waiting(9)), sign(1, working(0.1), 8.4), sign(2, waiting(3), 9)},
             "rank 2 on node c (and 1 more) is frozen or unreachable: no sign of life for 9 s "
             "(limit silence=8 s), last seen in phase step after step 12, in all-reduce no. 77"},
        Case{"silent_at_the_end", {sign(0, working(1)), sign(1, working(1, Phase::end), 60)}, ""},
        Case{"silent_before_the_first_sign",
             {sign(0, working(1)), sign(1, Seen{}, 8.4)},
             "rank 1 on node b is frozen or unreachable: no sign of life for 8 s (limit silence=8 "
             "s), last seen in phase start, before its first collective"},
        Case{"stands_still",
             {sign(0, waiting(301)), sign(1, working(302)), sign(2, waiting(301))},
             "rank 1 on node b stands still for 302 s (limit step=300 s), in phase step after step "
             "12, after all-reduce no. 76"},
        Case{"a_save_may_take_longer_than_those_who_wait_for_it",
             {sign(0, waiting(400)), sign(1, working(400, Phase::save)), sign(2, waiting(400))},
             ""},
        Case{"a_save_has_its_own_limit",
             {sign(0, waiting(601)), sign(1, working(601, Phase::save))},
             "rank 1 on node b stands still for 601 s (limit save=600 s), in phase save after step "
             "12, after all-reduce no. 76"},
        Case{"a_save_that_moves_may_take_for_ever",
             {sign(0, waiting(9000)), sign(1, working(1, Phase::save)), sign(2, waiting(9000))},
             ""},
        Case{"a_load_that_moves_may_take_for_ever",
             {sign(0, working(1, Phase::start)), sign(1, of_phase(Phase::start, waiting(9000)))},
             ""},
        Case{"who_waits_longest_is_not_to_blame",
             {sign(0, waiting(350)), sign(1, working(301)), sign(2, waiting(350))},
             "rank 1 on node b stands still for 301 s (limit step=300 s), in phase step after step "
             "12, after all-reduce no. 76"},
        Case{"the_last_collective_counts_before_the_time",
             {sign(0, working(302)), sign(1, after(working(350), 77))},
             "rank 0 on node a stands still for 302 s (limit step=300 s), in phase step after step "
             "12, after all-reduce no. 76"},
        Case{"who_is_ahead_is_not_judged_before_the_hindmost",
             {sign(0, working(400, Phase::save)), sign(1, after(working(350), 77))},
             ""},
        Case{"who_waited_is_not_to_blame_when_the_others_come_past_before_its_next_sign",
             {sign(0, waiting(0.1, 78)), sign(1, waiting(400, 77)), sign(2, waiting(400, 77))},
             ""},
        Case{"nor_when_their_gpus_come_past",
             {sign(0, on_gpu(13, 12, working(0.1))), sign(1, on_gpu(12, 11, waiting(400)))},
             ""},
        Case{"who_waited_is_to_blame_when_those_ahead_have_waited_for_it",
             {sign(0, waiting(301, 78)), sign(1, waiting(400, 77)), sign(2, waiting(0.1, 78))},
             "rank 1 on node b stands still for 301 s (limit step=300 s), in phase step after step "
             "12, in all-reduce no. 77"},
        Case{"the_hindmost_of_those_that_wait",
             {sign(0, waiting(301, 78)), sign(1, waiting(301, 77)), sign(2, waiting(301, 78))},
             "rank 1 on node b stands still for 301 s (limit step=300 s), in phase step after step "
             "12, in all-reduce no. 77"},
        Case{"the_last_gradient_counts_within_one_collective",
             {sign(0, made(9, working(350))), sign(1, made(5, working(301)))},
             "rank 1 on node b stands still for 301 s (limit step=300 s), in phase step after step "
             "12, after all-reduce no. 76 and 5 gradients"},
        Case{"who_has_all_gradients_waits_for_who_has_not",
             {sign(0, waiting(350)), sign(1, made(5, working(301)))},
             "rank 1 on node b stands still for 301 s (limit step=300 s), in phase step after step "
             "12, after all-reduce no. 76 and 5 gradients"},
        Case{"an_exchange_is_a_wait",
             {sign(0, exchanging(350)), sign(1, working(301)), sign(2, exchanging(350))},
             "rank 1 on node b stands still for 301 s (limit step=300 s), in phase step after step "
             "12, after all-reduce no. 76"},
        Case{"all_exchange",
             {sign(0, exchanging(350)), sign(1, exchanging(301))},
             "all ranks wait for each other for 301 s (limit step=300 s), in phase step after step "
             "12, in exchange, after all-reduce no. 76: the network between them carries nothing"},
        Case{"of_GPUs_the_one_that_has_not_begun",
             {sign(0, on_gpu(812, 811, working(350))), sign(1, on_gpu(811, 811, working(301)))},
             "rank 1 on node b stands still for 301 s (limit step=300 s), in phase step after step "
             "12, after all-reduce no. 76, its GPU after collective no. 811"},
        Case{"a_host_that_waits_for_its_GPU_is_not_behind_one_that_has_gone_on",
             {sign(0, on_gpu(812, 811, working(350))), sign(1, on_gpu(811, 811, waiting(301)))},
             "rank 1 on node b stands still for 301 s (limit step=300 s), in phase step after step "
             "12, in all-reduce no. 77, its GPU after collective no. 811"},
        Case{"all_GPUs_wait_alike",
             {sign(0, on_gpu(812, 811, working(350))), sign(1, on_gpu(812, 811, working(301)))},
             "all ranks wait for each other for 301 s (limit step=300 s), in phase step after step "
             "12, after all-reduce no. 76, its GPU in collective no. 812: the network between them "
             "carries nothing"},
        Case{"the_last_to_come_has_not_waited_long_enough",
             {sign(0, waiting(350)), sign(1, waiting(10))},
             ""},
        Case{"one_that_has_ended_holds_nobody",
             {sign(0, of_phase(Phase::end, working(900))), sign(1, waiting(301)),
              sign(2, working(302))},
             "rank 2 on node c stands still for 302 s (limit step=300 s), in phase step after step "
             "12, after all-reduce no. 76"},
        Case{"all_wait_alike",
             {sign(0, waiting(301)), sign(1, waiting(301))},
             "all ranks wait for each other for 301 s (limit step=300 s), in phase step after step "
             "12, in all-reduce no. 77: the network between them carries nothing"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(Judge, of_no_limits_accuses_nobody) {
  const Limits none{.start = 0, .step = 0, .save = 0, .silence = 0};
  const std::vector<Sign> signs{sign(0, waiting(9000)), sign(1, working(9000), 9000)};
  EXPECT_FALSE(judge(signs, none));
}

TEST(Judge, counts_silence_as_standing_still_where_nothing_else_ends_it) {
  Limits limits;
  limits.silence = 0;
  const std::vector<Sign> signs{sign(0, waiting(400)), sign(1, working(1), 301)};
  const auto accused = judge(signs, limits);
  ASSERT_TRUE(accused);
  EXPECT_EQ(accused->rank, 1);
}

TEST(Judge, who_waits_for_others_does_not_stand_still) {
  EXPECT_TRUE(stands_still(sign(1, working(301)), Limits{}));
  EXPECT_FALSE(stands_still(sign(1, waiting(301)), Limits{}));
  EXPECT_FALSE(stands_still(sign(1, exchanging(301)), Limits{}));
  EXPECT_FALSE(stands_still(sign(1, working(301, Phase::save)), Limits{}));
}

TEST(Straggler, is_the_one_that_all_wait_for) {
  const auto of = [](std::vector<double> forward_seconds) {
    std::vector<WorkDone> work;
    for (std::size_t rank = 0; rank < forward_seconds.size(); ++rank)
      work.push_back({.rank = static_cast<int>(rank),
                      .node = "n",
                      .data_seconds = 0.001,
                      .forward_seconds = forward_seconds[rank]});
    const auto found = find_straggler(work, /*step_seconds=*/0.1);
    return found ? found->rank : -1;
  };
  EXPECT_EQ(of({0.03}), -1);
  EXPECT_EQ(of({0.03, 0.03}), -1);
  EXPECT_EQ(of({0.03, 0.04}), -1) << "less than half as much again";
  EXPECT_EQ(of({0.003, 0.008}), -1) << "a twentieth of the step";
  EXPECT_EQ(of({0.03, 0.06}), 1);
  EXPECT_EQ(of({0.03, 0.031, 0.09, 0.029}), 2);
  EXPECT_EQ(of({0.09, 0.031, 0.03, 0.029}), 0);
}

TEST(Straggler, is_told_with_its_times) {
  const std::vector<WorkDone> work{
      {.rank = 0, .node = "a", .data_seconds = 0.001, .forward_seconds = 0.03},
      {.rank = 1, .node = "b", .data_seconds = 0.07, .forward_seconds = 0.03}};
  EXPECT_EQ(find_straggler(work, 0.1)->sentence,
            "rank 1 on node b is slow: data 70.0 ms and forward 30.0 ms a step, the others 1.0 ms "
            "and 30.0 ms; all wait for it in each step of 100.0 ms");
}

TEST(Limits, are_read_over_the_defaults) {
  const auto limits = limits_from("step=60,silence=0");
  ASSERT_TRUE(limits);
  EXPECT_EQ(*limits, (Limits{.step = 60, .silence = 0}));
  EXPECT_EQ(limits_from(to_string(Limits{})), Limits{});
  EXPECT_EQ(limit_of(*limits, Phase::step), 60);
  EXPECT_EQ(limit_of(*limits, Phase::eval), 300);
  EXPECT_EQ(limit_of(*limits, Phase::end), std::nullopt);
  for (const char* wrong : {"step", "stop=3", "step=", "step=1", "step=-5", "step=4s", "step=inf"})
    EXPECT_FALSE(limits_from(wrong)) << wrong;
}

}  // namespace
}  // namespace tj::trainer
