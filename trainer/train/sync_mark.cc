#include "trainer/train/sync_mark.h"

namespace tj::trainer {
namespace {

std::string text_of(const SyncMark& mark) {
  return "--sync " + mark.kind +
         (mark.ranks > 0
              ? " on " + std::to_string(mark.ranks) + (mark.ranks == 1 ? " rank" : " ranks")
              : "");
}

}  // namespace

SyncMark sync_mark_of(const SyncPlan& plan, int world_size) {
  if (plan.kind == SyncKind::step) return {};
  return {.kind = to_string(plan.kind), .ranks = trains_apart(plan.kind) ? world_size : 0};
}

GroupStems sync_groups_of(const Manifest& manifest, const SyncMark& asked) {
  GroupStems stems;
  if (manifest.sync.kind != asked.kind) return stems;
  if (manifest.has_group(kSyncStem)) stems.insert(kSyncStem);
  if (manifest.sync.ranks != asked.ranks) return stems;
  for (const char* const stem : {kRanksStem, kRoundStem})
    if (manifest.has_group(stem)) stems.insert(stem);
  return stems;
}

std::string left_line(const Manifest& manifest, const SyncMark& asked) {
  const auto read = sync_groups_of(manifest, asked);
  const auto is_left = [&](const char* stem) {
    return manifest.has_group(stem) && !read.contains(stem);
  };
  std::string what;
  const auto add = [&](const std::string& words) { what += (what.empty() ? "" : "; ") + words; };
  const bool is_late = manifest.sync.kind == to_string(SyncKind::late);
  if (is_left(kSyncStem))
    add(is_late ? "the gradient that waited is not applied" : "the outer momentum begins afresh");
  if (is_left(kRanksStem)) add("all ranks begin with the moments of its rank 0");
  if (is_left(kRoundStem)) add("the weights are those of its last synchronisation");
  if (what.empty()) return "";
  return "the checkpoint was made with " + text_of(manifest.sync) + ", this run is " +
         text_of(asked) + ": " + what;
}

}  // namespace tj::trainer
