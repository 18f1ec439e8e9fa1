// The promise of --keep and --resume, over random histories of runs that save, are killed between
// any two calls to the disk, meet a disk that says no, and whose checkpoints are damaged: of those
// that were announced, and that --keep still holds, the newest that is whole is gone on from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <set>

#include "tests/temporary_folder.h"
#include "tests/trainer/engine/disk_calls.h"
#include "trainer/checkpoint/file_plan.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/save_work.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr int kHistories = 200;
constexpr int kRuns = 6;

StateGroup group_of(const char* stem) {
  const auto zeros = [](std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{}); };
  const std::string prefix = stem;
  return {.stem = stem,
          .tensors = {{.name = prefix + ".a", .shape = {4}, .copy_to = zeros},
                      {.name = prefix + ".b", .shape = {2}, .copy_to = zeros},
                      {.name = prefix + ".c", .shape = {3}, .copy_to = zeros}}};
}

/// The part of one writer, as SaveJob makes it.
SaveWork work_of(const SaveOrder& order) {
  static const std::vector<StateGroup> groups{group_of(kModelStem), group_of(kOptimizerStem)};
  static const std::vector<std::byte> zeros(64);
  const auto plan = plan_files(groups, order.writers);
  std::vector<FileContent> files;
  std::map<std::string, std::string> indices;
  for (const auto& planned : plan) {
    const auto& group = groups[planned.group];
    if (planned.tensors.size() < group.tensors.size())
      indices[index_name(group.stem)] = index_text(groups, planned.group, plan);
    if (planned.writer != order.writer) continue;
    FileContent file{.name = planned.name, .head = {}, .parts = {}};
    std::vector<TensorBytes> tensors;
    for (const auto index : planned.tensors) {
      const auto bytes = std::span(zeros).first(group.tensors[index].bytes());
      tensors.push_back(
          {.name = group.tensors[index].name, .shape = group.tensors[index].shape, .bytes = bytes});
      file.parts.push_back(bytes);
    }
    file.head = safetensors_head(tensors, {{kStepKey, std::to_string(order.manifest.step)}});
    files.push_back(std::move(file));
  }
  return SaveWork(order, std::move(files), std::move(indices));
}

/// One that was announced, or committed by a run that was killed before it could say so.
struct Saved {
  std::int64_t id = 0;  // in its manifest, as the next sample
  std::int64_t step = 0;
  bool is_whole = true;
};

class History {
 public:
  explicit History(unsigned seed) : choice_(seed), keep_every_(one_of({0, 0, 4})) {}

  void live() {
    for (int run = 0; run < kRuns && !::testing::Test::HasFailure(); ++run) {
      const DiskCalls::Fate fate{.dies_at = one_of({0, 1}) == 0 ? below(160) : -1,
                                 .fails_at = below(5) == 0 ? below(80) : -1};
      is_set_aside_refused_ = below(2) == 0;
      live_one_run({.keep = one_of({0, 1, 1, 2, 3}), .keep_every = keep_every_}, fate, below(5));
      maybe_damage();
    }
    check_promise(newest_usable_checkpoint(out_.path()));
  }

  /// True when the run was killed.
  bool live_one_run(const RetentionPolicy& policy, const DiskCalls::Fate& fate, int saves) {
    policy_ = policy;
    const DiskCalls disk(fate);
    OwnCheckpoints own(policy.keep);
    std::int64_t step = go_on(own);
    for (; saves > 0 && !disk.is_dead() && !::testing::Test::HasFailure(); --saves) {
      step += 1 + below(3);
      if (!save(step, own)) break;  // such a run ends
      if (disk.is_dead()) break;
      check_promise(newest_usable_checkpoint(out_.path()));
      if (below(3) == 0) maybe_damage();
    }
    return disk.is_dead();
  }

  /// As a folder that is not ours to rename would.
  void refuse_set_aside() { is_set_aside_refused_ = true; }

  void damage(std::int64_t step) {
    const fs::path folder = out_.path() / checkpoint_name(step);
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    if (files.empty()) return;
    std::ranges::sort(files);
    const fs::path& file = files[static_cast<std::size_t>(below(static_cast<int>(files.size())))];
    if (below(2) == 0) {
      ::unlink(file.c_str());
    } else {
      fs::resize_file(file, fs::file_size(file) / 2);
    }
    for (auto& saved : line_)
      if (saved.step == step) saved.is_whole = false;
  }

  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> result;
    for (const auto& name : checkpoint_names(out_.path()))
      result.push_back(step_of_checkpoint(name));
    return result;
  }

 private:
  int below(int count) { return std::uniform_int_distribution(0, count - 1)(choice_); }
  int one_of(std::initializer_list<int> values) {
    return values.begin()[below(static_cast<int>(values.size()))];
  }

  /// As rank 0 begins a run; returns the step.
  std::int64_t go_on(OwnCheckpoints& own) {
    const auto search = newest_usable_checkpoint(out_.path());
    check_promise(search);
    sweep_drafts(out_.path());
    if (!search.found) {
      // A person has looked, and begins anew.
      for (const auto& name : checkpoint_names(out_.path())) remove_checkpoint(out_.path(), name);
      line_.clear();
      return 0;
    }
    for (const auto& damaged : search.damaged)
      if (!is_set_aside_refused_) (void)set_aside(out_.path(), damaged.name);
    const auto& manifest = search.found->manifest;
    while (!line_.empty() && line_.back().id != manifest.next_sample) line_.pop_back();
    if (line_.empty()) line_.push_back({.id = manifest.next_sample, .step = manifest.step});
    own.add(manifest.step);
    return manifest.step;
  }

  /// All writers in a random order, piece by piece. False when it failed.
  bool save(std::int64_t step, OwnCheckpoints& own) {
    own.add(step);
    const std::int64_t id = next_id_++;
    SaveOrder order{.out = out_.path(),
                    .run_id = "run",
                    .writers = 1 + below(3),
                    .manifest = {.step = step, .next_sample = id},
                    .config_json = "{\"model_type\": \"of a test\"}\n",
                    .retention = policy_,
                    .own = own.names()};
    std::vector<std::optional<SaveWork>> writers;
    for (order.writer = 0; order.writer < order.writers; ++order.writer)
      writers.emplace_back(work_of(order));
    const bool is_committed = drive(order, writers);
    if (stands({.id = id, .step = step})) announce({.id = id, .step = step});
    return is_committed;
  }

  bool drive(SaveOrder order, std::vector<std::optional<SaveWork>>& writers) {
    while (true) {
      const auto writer = below(static_cast<int>(writers.size()));
      auto& work = writers[static_cast<std::size_t>(writer)];
      if (!work) continue;
      const auto state = work->advance();
      if (state && *state == SaveWork::State::committed) return true;
      if (!state && writer == 0) return false;
      order.writer = writer;
      if (!state) leave_failure_note(order, state.error());
      if (!state && !fs::exists(draft_path(order.out, order.manifest.step, "run") /
                                ("writer-" + std::to_string(writer) + ".json")))
        return false;  // nobody hears of it but by the next step
      if (!state || (writer != 0 && *state == SaveWork::State::own_done)) work.reset();
    }
  }

  /// Whoever was killed before it could say so: what has its name is whole, and --keep counts it.
  bool stands(const Saved& saved) const {
    const fs::path folder = out_.path() / checkpoint_name(saved.step);
    const auto text = read_small_file(folder / kManifestFile, 1 << 20);
    const auto manifest = text ? manifest_from(*text) : Result<Manifest>(text.error());
    return manifest && manifest->next_sample == saved.id;
  }

  void announce(const Saved& saved) {
    line_.push_back(saved);
    std::int64_t newer = std::ssize(line_);
    std::erase_if(line_, [&](const Saved& one) {
      const bool is_multiple = keep_every_ > 0 && one.step % keep_every_ == 0;
      return --newer >= policy_.keep && policy_.keep > 0 && !is_multiple;
    });
  }

  void check_promise(const CheckpointSearch& search) {
    const auto promised = std::find_if(line_.rbegin(), line_.rend(),
                                       [](const Saved& saved) { return saved.is_whole; });
    if (promised == line_.rend()) return;
    ASSERT_TRUE(search.found) << "step " << promised->step << " is lost";
    EXPECT_EQ(search.found->manifest.next_sample, promised->id)
        << "found step " << search.found->manifest.step << ", and not step " << promised->step;
  }

  void maybe_damage() {
    const auto there = steps();
    // The newest most often: that is what a run would go on from.
    for (const auto step : there)
      if (below(3) == 0) return damage(step);
  }

  const TemporaryFolder out_;
  std::mt19937 choice_;
  const std::int64_t keep_every_;
  RetentionPolicy policy_;
  std::vector<Saved> line_;  // what --keep still holds, the newest last
  std::int64_t next_id_ = 1;
  bool is_set_aside_refused_ = false;
};

TEST(CheckpointHistory, the_newest_whole_one_is_always_gone_on_from) {
  for (unsigned seed = 0; seed < kHistories && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    History(seed).live();
  }
}

/// Two are saved, the newer one is damaged, and the run that goes on from the older one is killed
/// at each call in turn. True when it came to its end.
bool killed_at(std::int64_t call, bool is_set_aside) {
  History history(1);
  if (!is_set_aside) history.refuse_set_aside();
  history.live_one_run({.keep = 2}, {}, 2);
  history.damage(history.steps().front());
  const bool is_killed = history.live_one_run({.keep = 1}, {.dies_at = call}, 1);
  history.live_one_run({.keep = 1}, {}, 1);
  return !is_killed;
}

TEST(CheckpointHistory, a_kill_at_any_call_leaves_what_was_just_saved_or_what_was_gone_on_from) {
  for (const bool is_set_aside : {true, false}) {
    std::int64_t call = 0;
    while (!killed_at(call, is_set_aside) && !HasFailure()) ++call;
    EXPECT_GT(call, 30);  // the calls were seen
  }
}

TEST(DiskCalls, all_calls_that_change_a_disk_are_counted) {
  const TemporaryFolder out;
  const auto calls = [](const auto& act) {
    const DiskCalls disk({});
    act();
    return disk.count();
  };
  EXPECT_EQ(calls([&] { fs::create_directories(out.path() / "a/b"); }), 2);
  EXPECT_EQ(calls([&] { (void)write_durably(out.path() / "a/b/c", "text"); }), 3);
  EXPECT_EQ(calls([&] { fs::rename(out.path() / "a/b", out.path() / "a/d"); }), 1);
  EXPECT_EQ(calls([&] { fs::remove_all(out.path() / "a"); }), 3);
  EXPECT_EQ(calls([&] { (void)read_small_file(out.path() / "none", 10); }), 0);
}

}  // namespace
}  // namespace tj::trainer
