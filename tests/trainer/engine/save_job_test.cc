#include "trainer/checkpoint/save_job.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <latch>

#include "tests/temporary_folder.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/safetensors.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

/// A state of two groups whose numbers a test may change.
struct State {
  std::vector<std::vector<float>> values;
  std::vector<StateGroup> groups;

  State() : values{{1, 2, 3, 4}, {5, 6}, {7, 8, 9, 10}, {11, 12}} {
    groups = {
        {.stem = kModelStem, .tensors = {tensor("a", 0), tensor("b", 1)}},
        {.stem = kOptimizerStem, .tensors = {tensor("exp_avg.a", 2), tensor("exp_avg.b", 3)}}};
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  StateTensor tensor(const std::string& name, std::size_t index) {
    return {.name = name,
            .shape = {static_cast<std::int64_t>(values[index].size())},
            .copy_to = [this, index](std::span<std::byte> bytes) {
              std::memcpy(bytes.data(), values[index].data(), bytes.size());
            }};
  }
};

/// For those who don't look at it.
PhaseClock& clock() {
  static PhaseClock clock;
  return clock;
}

SaveOrder order_of(const fs::path& out, int writer, int writers) {
  return {.out = out,
          .run_id = "run",
          .writer = writer,
          .writers = writers,
          .manifest = {.step = 25, .next_sample = 100},
          .others_max = std::chrono::seconds(60)};
}

std::vector<float> read_back(const fs::path& folder, const std::string& stem,
                             const std::string& name, std::size_t count) {
  const auto catalog = TensorCatalog::open(folder, stem);
  EXPECT_TRUE(catalog) << describe(catalog.error());
  std::vector<float> floats(count);
  const TensorTarget target{
      .name = name, .shape = {static_cast<std::int64_t>(count)}, .floats = floats};
  const auto read = read_tensor(catalog->find(name), target);
  EXPECT_TRUE(read) << describe(read.error());
  return floats;
}

TEST(SaveJob, what_is_saved_is_the_state_of_the_beginning) {
  const TemporaryFolder out;
  State state;
  StagingBuffer staging;
  std::vector<SaveReport> reports;
  SaveJob job({.order = order_of(out.path(), 0, 1),
               .groups = state.groups,
               .staging = staging,
               .clock = clock(),
               .on_committed = [&](const SaveReport& report) { reports.push_back(report); }});
  job.wait_until_copied();
  state.values[0].assign(4, -1);
  ASSERT_TRUE(job.finish());
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].step, 25);
  EXPECT_EQ(reports[0].path, out.path() / "step-000025");
  const auto search = newest_usable_checkpoint(out.path());
  ASSERT_TRUE(search.found) << describe(search.damaged[0]);
  EXPECT_EQ(search.found->manifest.next_sample, 100);
  EXPECT_EQ(read_back(reports[0].path, kModelStem, "a", 4), (std::vector<float>{1, 2, 3, 4}));
}

TEST(SaveJob, the_training_may_go_on_once_the_copy_is_there_and_not_before) {
  const TemporaryFolder out;
  State state;
  StagingBuffer staging;
  std::latch may_copy(1);
  state.groups[1].tensors[1].copy_to = [&](std::span<std::byte>) { may_copy.wait(); };
  SaveJob job({.order = order_of(out.path(), 0, 1),
               .groups = state.groups,
               .staging = staging,
               .clock = clock(),
               .on_committed = {}});
  std::atomic<bool> went_on = false;
  std::thread training([&] {
    job.wait_until_copied();
    went_on = true;
  });
  EXPECT_FALSE(went_on);
  may_copy.count_down();
  training.join();
  EXPECT_TRUE(went_on);
  EXPECT_TRUE(job.finish());
}

TEST(SaveJob, several_writers_share_the_work_and_the_first_commits) {
  const TemporaryFolder out;
  State state;
  StagingBuffer stagings[3];
  std::vector<std::unique_ptr<SaveJob>> jobs;
  for (const int writer : {2, 1, 0}) {  // in whatever order they come
    jobs.push_back(
        std::make_unique<SaveJob>(SaveJob::Inputs{.order = order_of(out.path(), writer, 3),
                                                  .groups = state.groups,
                                                  .staging = stagings[writer],
                                                  .clock = clock(),
                                                  .on_committed = {}}));
  }
  for (const auto& job : jobs) ASSERT_TRUE(job->finish_own_part());
  for (const auto& job : jobs) ASSERT_TRUE(job->finish());
  const auto search = newest_usable_checkpoint(out.path());
  ASSERT_TRUE(search.found) << describe(search.damaged[0]);
  std::vector<std::string> names;
  for (const auto& [name, digest] : search.found->manifest.files) names.push_back(name);
  EXPECT_EQ(
      names,
      (std::vector<std::string>{
          "config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
          "model.safetensors.index.json", "optimizer-00001-of-00002.safetensors",
          "optimizer-00002-of-00002.safetensors", "optimizer.safetensors.index.json"}));
  EXPECT_EQ(std::distance(fs::directory_iterator(search.found->folder), fs::directory_iterator()),
            8);  // and the manifest: no notes are left
  EXPECT_EQ(read_back(search.found->folder, kOptimizerStem, "exp_avg.b", 2),
            (std::vector<float>{11, 12}));
}

TEST(SaveJob, a_writer_that_fails_is_the_cause_and_nothing_is_left) {
  const TemporaryFolder out;
  State state;
  StagingBuffer stagings[2];
  {
    SaveJob first({.order = order_of(out.path(), 0, 2),
                   .groups = state.groups,
                   .staging = stagings[0],
                   .clock = clock(),
                   .on_committed = {}});
    State broken;
    for (auto& group : broken.groups) {
      for (auto& tensor : group.tensors)
        tensor.copy_to = [](std::span<std::byte>) { throw std::runtime_error("no such memory"); };
    }
    ASSERT_TRUE(first.finish_own_part());
    SaveJob second({.order = order_of(out.path(), 1, 2),
                    .groups = broken.groups,
                    .staging = stagings[1],
                    .clock = clock(),
                    .on_committed = {}});
    EXPECT_EQ(describe(second.finish_own_part().error()), "no such memory");
    EXPECT_EQ(describe(first.finish().error()), "rank 1: no such memory");
    EXPECT_TRUE(first.has_failed());
  }
  EXPECT_TRUE(fs::is_empty(out.path()));
}

TEST(SaveJob, a_writer_that_never_comes_is_named_after_a_bound) {
  const TemporaryFolder out;
  State state;
  StagingBuffer staging;
  auto order = order_of(out.path(), 0, 2);
  order.others_max = std::chrono::milliseconds(1);
  SaveJob job({.order = order,
               .groups = state.groups,
               .staging = staging,
               .clock = clock(),
               .on_committed = {}});
  EXPECT_EQ(describe(job.finish().error()),
            "rank 1: has written nothing of its part for 0 s (limit save)");
}

TEST(SaveJob, a_writer_that_still_writes_is_waited_for) {
  const TemporaryFolder out;
  auto order = order_of(out.path(), 0, 2);
  order.others_max = std::chrono::milliseconds(1);
  SaveWork work(order, {}, {});
  using Stage = SaveWork::State;
  const auto state_after_the_bound = [&] {
    const auto begun = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begun < 2 * *order.others_max)
      std::this_thread::yield();
    return work.advance();
  };
  Result<Stage> state = Stage::busy;
  while (state && *state != Stage::waiting) state = work.advance();
  const auto file = draft_path(out.path(), 25, "run") / "model-00002-of-00002.safetensors";
  for (int bytes = 1; bytes <= 5; ++bytes) {
    std::ofstream(file, std::ios::app) << "x";
    state = state_after_the_bound();
    ASSERT_TRUE(state) << bytes << " bytes: " << describe(state.error());
    EXPECT_EQ(*state, Stage::waiting);
  }
  EXPECT_FALSE(state_after_the_bound());
}

TEST(SaveJob, who_waits_for_another_writer_is_seen_to_wait) {
  const TemporaryFolder out;
  State state;
  StagingBuffer stagings[2];
  PhaseClock watched;
  SaveJob first({.order = order_of(out.path(), 0, 2),
                 .groups = state.groups,
                 .staging = stagings[0],
                 .clock = watched,
                 .on_committed = {}});
  std::thread training([&] { EXPECT_TRUE(first.finish()); });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (watched.seen().waits_for.empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_EQ(watched.seen().waits_for, "wait for other writers");
  SaveJob second({.order = order_of(out.path(), 1, 2),
                  .groups = state.groups,
                  .staging = stagings[1],
                  .clock = clock(),
                  .on_committed = {}});
  EXPECT_TRUE(second.finish());
  training.join();
  EXPECT_EQ(watched.seen().waits_for, "");
}

TEST(SaveJob, what_whoever_is_told_throws_is_an_error_and_ends_nothing) {
  const TemporaryFolder out;
  State state;
  StagingBuffer staging;
  SaveJob job({.order = order_of(out.path(), 0, 1),
               .groups = state.groups,
               .staging = staging,
               .clock = clock(),
               .on_committed = [](const SaveReport&) { throw std::runtime_error("no words"); }});
  EXPECT_EQ(describe(job.finish().error()), "no words");
  EXPECT_TRUE(newest_usable_checkpoint(out.path()).found);
}

TEST(SaveJob, an_out_folder_that_is_gone_is_an_error_with_its_name) {
  const TemporaryFolder folder;
  const auto file = folder.write("file", "");
  State state;
  StagingBuffer staging;
  SaveJob job({.order = order_of(file, 0, 1),
               .groups = state.groups,
               .staging = staging,
               .clock = clock(),
               .on_committed = {}});
  EXPECT_EQ(describe(job.finish().error()),
            (file / ".draft-step-000025-run").string() + ": can't be created: Not a directory");
}

TEST(SaveJob, an_abandoned_one_leaves_nothing) {
  const TemporaryFolder out;
  State state;
  StagingBuffer staging;
  {
    SaveJob job({.order = order_of(out.path(), 0, 2),
                 .groups = state.groups,
                 .staging = staging,
                 .clock = clock(),
                 .on_committed = {}});
    ASSERT_TRUE(job.finish_own_part());
    job.abandon();
  }
  EXPECT_TRUE(fs::is_empty(out.path()));
}

}  // namespace
}  // namespace tj::trainer
