#include "trainer/report/ledger.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "trainer/report/ledger_file.h"

namespace tj::trainer {
namespace {

Spending spent(std::initializer_list<std::pair<Spent, double>> parts) {
  Spending spending;
  for (const auto& [kind, seconds] : parts) spending[kind] = seconds;
  return spending;
}

/// 30 s: 5 s of start, saved at step 10 after 15 s, then 10 s more.
LedgerRecord killed_after_a_save() {
  return {.attempt = 0,
          .updated_unix_seconds = 1000,
          .spending = spent({{Spent::start, 5}, {Spent::compute, 24}, {Spent::save, 1}}),
          .marks = {{0, spent({{Spent::start, 5}})},
                    {10, spent({{Spent::start, 5}, {Spent::compute, 14}, {Spent::save, 1}})}}};
}

TEST(Ledger, what_came_after_the_checkpoint_is_lost_and_so_is_the_time_until_the_next_attempt) {
  EXPECT_EQ(spent_before(killed_after_a_save(), 10, 1007),
            spent({{Spent::start, 5}, {Spent::compute, 14}, {Spent::save, 1}, {Spent::lost, 17}}));
}

TEST(Ledger, a_start_from_scratch_loses_all_steps) {
  EXPECT_EQ(spent_before(killed_after_a_save(), 0, 1007),
            spent({{Spent::start, 5}, {Spent::save, 1}, {Spent::lost, 31}}));
}

TEST(Ledger, a_checkpoint_without_a_mark_counts_from_the_mark_before_it) {
  EXPECT_EQ(spent_before(killed_after_a_save(), 12, 1000)[Spent::lost], 10);
}

TEST(Ledger, the_time_after_a_finished_run_belongs_to_nobody) {
  auto finished = killed_after_a_save();
  finished.is_finished = true;
  EXPECT_EQ(spent_before(finished, 10, 99'999)[Spent::lost], 10);
}

TEST(Ledger, a_clock_that_went_back_takes_nothing_away) {
  EXPECT_EQ(spent_before(killed_after_a_save(), 10, 5)[Spent::lost], 10);
}

TEST(Ledger, a_record_survives_its_file) {
  const auto record = killed_after_a_save();
  const auto read = ledger_from(ledger_json(record));
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(*read, record);
}

TEST(Ledger, what_is_no_ledger_is_refused) {
  for (const char* text : {"", "[]", "{}", R"({"attempt":0,"updated_unix_seconds":"x"})",
                           R"({"attempt":0,"updated_unix_seconds":1,"finished":false,)"
                           R"("seconds":{"compute":-1},"marks":[]})"})
    EXPECT_EQ(ledger_from(text).error().code, Code::invalid) << text;
}

TEST(Ledger, each_second_of_the_clock_has_one_kind) {
  Seen seen;
  seen.phase_seconds = {3, 20, 6, 4, 1};
  seen.step_section_seconds[static_cast<std::size_t>(Section::data)] = 2;
  seen.step_section_seconds[static_cast<std::size_t>(Section::collective)] = 5;
  seen.step_section_seconds[static_cast<std::size_t>(Section::save)] = 1;
  const auto spending = spending_of(seen, 0.5);
  EXPECT_EQ(spending, spent({{Spent::start, 4.5},
                             {Spent::compute, 12},
                             {Spent::communication, 5},
                             {Spent::data, 2},
                             {Spent::save, 5},
                             {Spent::eval, 6}}));
  EXPECT_EQ(spending.total(), 34.5);
}

TEST(Ledger, the_line_leaves_out_what_took_no_time) {
  EXPECT_EQ(ledger_line(spent({{Spent::compute, 45}, {Spent::start, 5}, {Spent::data, 0.01}})),
            "goodput 90.0 % of 50.0 s | compute 45.0 s ########################### | start 5.0 s "
            "###");
}

TEST(LedgerFile, goes_on_where_the_last_attempt_ended) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "ledger.json";
  const PhaseClock clock;
  LedgerFile first(path, clock, 100);
  first.begin(0, /*resumes=*/true, 0);
  first.mark(5);
  first.write();
  LedgerFile second(path, clock, 7);
  second.begin(1, /*resumes=*/true, 5);
  EXPECT_NEAR(second.spending()[Spent::start], 107, 1);
  EXPECT_NEAR(second.spending().total(), 107, 1);
  LedgerFile afresh(path, clock, 3);
  afresh.begin(0, /*resumes=*/false, 0);
  EXPECT_NEAR(afresh.spending().total(), 3, 1);
}

TEST(LedgerFile, knows_how_old_its_process_is) {
  EXPECT_GT(process_age_seconds(), 0);
  EXPECT_LT(process_age_seconds(), 600);
}

}  // namespace
}  // namespace tj::trainer
