#include "trainer/train/sync_mark.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

Manifest manifest_of(const SyncMark& mark, std::initializer_list<const char*> files) {
  Manifest manifest;
  manifest.sync = mark;
  for (const auto* const file : files) manifest.files[file] = {};
  return manifest;
}

const SyncMark kDiloco2{.kind = "diloco", .ranks = 2};
const SyncMark kLate{.kind = "late"};

TEST(SyncMark, says_how_many_ranks_where_it_matters) {
  EXPECT_EQ(sync_mark_of({}, 4), SyncMark());
  EXPECT_EQ(sync_mark_of({.kind = SyncKind::late}, 4), kLate);
  EXPECT_EQ(sync_mark_of({.kind = SyncKind::diloco}, 2), kDiloco2);
}

TEST(SyncMark, stands_in_the_manifest_where_there_is_one) {
  Manifest manifest = manifest_of(kDiloco2, {"sync.safetensors"});
  manifest.data.unit = "tokens";
  const auto read = manifest_from(manifest_text(manifest));
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(*read, manifest);
  manifest.sync = {};
  EXPECT_EQ(manifest_text(manifest).find("\"sync\""), std::string::npos);
}

TEST(SyncMark, groups_are_known_by_the_names_of_their_files) {
  const auto manifest = manifest_of({}, {"sync-00001-of-00002.safetensors",
                                         "ranks.safetensors.index.json", "rounds.safetensors"});
  EXPECT_TRUE(manifest.has_group("sync"));
  EXPECT_FALSE(manifest.has_group("ranks"));
  EXPECT_FALSE(manifest.has_group("round"));
}

TEST(SyncMark, the_same_way_reads_what_it_left) {
  const auto manifest = manifest_of(
      kDiloco2, {"sync.safetensors", "ranks-00001-of-00002.safetensors", "round.safetensors"});
  EXPECT_EQ(sync_groups_of(manifest, kDiloco2), (GroupStems{"sync", "ranks", "round"}));
  EXPECT_EQ(left_line(manifest, kDiloco2), "");
}

TEST(SyncMark, what_another_run_can_not_take_over_is_said) {
  const auto manifest =
      manifest_of(kDiloco2, {"sync.safetensors", "ranks.safetensors", "round.safetensors"});
  const SyncMark three{.kind = "diloco", .ranks = 3};
  EXPECT_EQ(sync_groups_of(manifest, three), GroupStems{"sync"});
  EXPECT_EQ(left_line(manifest, three),
            "the checkpoint was made with --sync diloco on 2 ranks, this run is --sync diloco on 3 "
            "ranks: all ranks begin with the moments of its rank 0; the weights are those of its "
            "last synchronisation");
  EXPECT_EQ(sync_groups_of(manifest, {}), GroupStems());
  EXPECT_EQ(left_line(manifest_of(kLate, {"sync.safetensors"}), {}),
            "the checkpoint was made with --sync late, this run is --sync step: the gradient that "
            "waited is not applied");
  EXPECT_EQ(left_line(manifest_of({}, {"model.safetensors"}), kDiloco2), "");
}

}  // namespace
}  // namespace tj::trainer
