#include "trainer/report/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tj::trainer {
namespace {
using testing::HasSubstr;
using testing::Not;

TEST(MetricsPage, before_the_first_step_only_what_is_known_is_there) {
  RunState state;
  state.progress.phase = "start";
  state.progress.steps = 300;
  const std::string page = metrics_page(state);
  EXPECT_THAT(page, HasSubstr("\ntrainer_phase{phase=\"start\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("\ntrainer_phase{phase=\"step\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("\ntrainer_last_step 300\n"));
  for (const char* name : {"trainer_loss", "trainer_mfu_ratio", "trainer_learning_rate",
                           "trainer_last_checkpoint_step", "trainer_eta_seconds"})
    EXPECT_THAT(page, Not(HasSubstr(name)));
}

TEST(MetricsPage, numbers_keep_all_their_digits) {
  RunState state;
  state.progress.loss = 0.1 + 0.2;
  state.progress.mfu = 0.41;
  state.spending[Spent::lost] = 12.5;
  const std::string page = metrics_page(state);
  EXPECT_THAT(page, HasSubstr("# TYPE trainer_loss gauge\ntrainer_loss 0.30000000000000004\n"));
  EXPECT_THAT(page, HasSubstr("\ntrainer_mfu_ratio 0.41\n"));
  EXPECT_THAT(page, HasSubstr("\ntrainer_goodput_seconds_total{kind=\"lost\"} 12.5\n"));
}

TEST(MetricsPage, the_wait_for_other_ranks_is_there_once_there_is_a_step) {
  RunState state;
  EXPECT_THAT(metrics_page(state), Not(HasSubstr("trainer_exposed_communication_seconds")));
  state.exposed_seconds = 0.25;
  EXPECT_THAT(metrics_page(state), HasSubstr("\ntrainer_exposed_communication_seconds 0.25\n"));
}

TEST(MetricsPage, a_loss_that_is_no_number_is_written_as_prometheus_reads_it) {
  RunState state;
  state.progress.loss = std::numeric_limits<double>::infinity();
  EXPECT_THAT(metrics_page(state), HasSubstr("trainer_loss +Inf\n"));
}

}  // namespace
}  // namespace tj::trainer
