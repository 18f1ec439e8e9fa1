#include "trainer/checkpoint/folder.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/temporary_folder.h"
#include "trainer/checkpoint/safetensors.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

const std::vector<float> kNumbers(25, 1.5F);
constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";

Manifest write_files(const fs::path& folder, std::int64_t step) {
  Manifest manifest{.step = step};
  for (const char* name : {kModelFile, kOptimizerFile}) {
    const TensorBytes tensor{
        .name = name, .shape = {25}, .bytes = std::as_bytes(std::span(kNumbers))};
    const auto digest =
        write_safetensors(folder / name, std::span(&tensor, 1), {{"step", std::to_string(step)}});
    EXPECT_TRUE(digest) << describe(digest.error());
    manifest.files[name] = *digest;
  }
  return manifest;
}

fs::path save(const fs::path& out, std::int64_t step) {
  auto draft = CheckpointDraft::begin(out, step);
  EXPECT_TRUE(draft) << describe(draft.error());
  const auto path = draft->commit(write_files(draft->folder(), step));
  EXPECT_TRUE(path) << describe(path.error());
  return *path;
}

TEST(CheckpointFolder, the_newest_is_found_by_number_not_by_text) {
  const TemporaryFolder out;
  for (const std::int64_t step : {999'999, 1'000'000, 25}) save(out.path(), step);
  EXPECT_EQ(checkpoint_names(out.path()),
            (std::vector<std::string>{"step-1000000", "step-999999", "step-000025"}));
  const auto search = newest_usable_checkpoint(out.path());
  ASSERT_TRUE(search.found);
  EXPECT_EQ(search.found->manifest.step, 1'000'000);
  EXPECT_TRUE(search.damaged.empty());
}

TEST(CheckpointFolder, a_folder_without_any_has_none) {
  const TemporaryFolder out;
  EXPECT_FALSE(newest_usable_checkpoint(out.path()).found);
  EXPECT_FALSE(newest_usable_checkpoint(out.path() / "not there").found);
}

TEST(CheckpointFolder, a_file_cut_in_half_sends_the_search_to_the_one_before_and_is_named) {
  const TemporaryFolder out;
  save(out.path(), 25);
  const fs::path newest = save(out.path(), 50);
  const std::string size = std::to_string(fs::file_size(newest / kModelFile));
  fs::resize_file(newest / kModelFile, 50);
  const auto search = newest_usable_checkpoint(out.path());
  ASSERT_TRUE(search.found);
  EXPECT_EQ(search.found->manifest.step, 25);
  EXPECT_EQ(
      search.damaged,
      (std::vector<DamagedCheckpoint>{
          {.name = "step-000050",
           .cause = "model.safetensors: is cut short: 50 bytes where the manifest says " + size}}));
}

TEST(CheckpointFolder, one_changed_byte_is_noticed) {
  const TemporaryFolder out;
  const auto path = save(out.path(), 25);
  std::fstream file(path / kOptimizerFile, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end).put('y');
  file.close();
  const auto search = newest_usable_checkpoint(out.path());
  EXPECT_FALSE(search.found);
  ASSERT_EQ(search.damaged.size(), 1U);
  EXPECT_TRUE(describe(search.damaged[0])
                  .starts_with("step-000025: optimizer.safetensors: is damaged: SHA-256"));
}

TEST(CheckpointFolder, missing_files_and_manifests_are_named) {
  const TemporaryFolder out;
  fs::remove(save(out.path(), 25) / kModelFile);
  fs::remove(save(out.path(), 50) / kManifestFile);
  EXPECT_EQ(newest_usable_checkpoint(out.path()).damaged,
            (std::vector<DamagedCheckpoint>{
                {.name = "step-000050",
                 .cause = "manifest.json: can't be opened: No such file or directory"},
                {.name = "step-000025",
                 .cause = "model.safetensors: can't be opened: No such file or directory"}}));
}

TEST(CheckpointFolder, a_draft_is_not_found_and_goes_with_its_owner) {
  const TemporaryFolder out;
  {
    const auto draft = CheckpointDraft::begin(out.path(), 25);
    ASSERT_TRUE(draft);
    write_files(draft->folder(), 25);
    EXPECT_TRUE(checkpoint_names(out.path()).empty());
    EXPECT_FALSE(fs::is_empty(out.path()));
  }
  EXPECT_TRUE(fs::is_empty(out.path()));
}

TEST(CheckpointFolder, a_damaged_one_of_the_same_step_makes_room) {
  const TemporaryFolder out;
  fs::resize_file(save(out.path(), 25) / kModelFile, 50);
  save(out.path(), 25);
  EXPECT_TRUE(newest_usable_checkpoint(out.path()).found);
  EXPECT_TRUE(fs::exists(out.path() / "damaged-step-000025"));
}

TEST(CheckpointFolder, a_manifest_that_names_no_file_is_of_a_damaged_one) {
  const TemporaryFolder out;
  const fs::path folder = save(out.path(), 25);
  ASSERT_TRUE(write_durably(folder / kManifestFile, manifest_text({.step = 25})));
  const auto search = newest_usable_checkpoint(out.path());
  EXPECT_FALSE(search.found);
  ASSERT_EQ(search.damaged.size(), 1U);
  EXPECT_EQ(search.damaged[0].cause, "model.safetensors: is not in the manifest");
}

TEST(CheckpointFolder, files_that_changed_places_are_recognised) {
  const TemporaryFolder out;
  const fs::path folder = save(out.path(), 25);
  fs::rename(folder / kModelFile, folder / "x");
  fs::rename(folder / kOptimizerFile, folder / kModelFile);
  fs::rename(folder / "x", folder / kOptimizerFile);
  const auto search = newest_usable_checkpoint(out.path());
  ASSERT_EQ(search.damaged.size(), 1U);
  EXPECT_NE(search.damaged[0].cause.find("(it is optimizer.safetensors)"), std::string::npos)
      << search.damaged[0].cause;
}

TEST(CheckpointFolder, a_file_of_another_step_is_recognised) {
  const TemporaryFolder out;
  const fs::path older = save(out.path(), 25);
  fs::copy_file(older / kModelFile, save(out.path(), 50) / kModelFile,
                fs::copy_options::overwrite_existing);
  const auto search = newest_usable_checkpoint(out.path());
  ASSERT_TRUE(search.found);
  EXPECT_EQ(search.found->manifest.step, 25);
  ASSERT_EQ(search.damaged.size(), 1U);
  EXPECT_NE(search.damaged[0].cause.find("(it is of step 25)"), std::string::npos)
      << search.damaged[0].cause;
}

TEST(CheckpointFolder, a_search_that_is_asked_to_stop_finds_nothing_and_calls_nothing_damaged) {
  const TemporaryFolder out;
  save(out.path(), 25);
  const auto search = newest_usable_checkpoint(out.path(), [] { return true; });
  EXPECT_FALSE(search.found);
  EXPECT_TRUE(search.damaged.empty());
}

TEST(CheckpointFolder, one_that_is_set_aside_is_not_found_again_and_nothing_of_it_is_lost) {
  const TemporaryFolder out;
  save(out.path(), 25);
  for (const char* const aside : {"damaged-step-000050", "damaged-step-000050-2"}) {
    save(out.path(), 50);
    const auto as = set_aside(out.path(), "step-000050");
    ASSERT_TRUE(as) << describe(as.error());
    EXPECT_EQ(*as, aside);
    EXPECT_TRUE(fs::exists(out.path() / aside / kModelFile));
  }
  EXPECT_EQ(checkpoint_names(out.path()), (std::vector<std::string>{"step-000025"}));
  sweep_drafts(out.path());
  EXPECT_TRUE(fs::exists(out.path() / "damaged-step-000050-2" / kModelFile));
}

TEST(CheckpointFolder, a_sweep_takes_drafts_and_nothing_else) {
  const TemporaryFolder out;
  save(out.path(), 10);
  out.write(".draft-step-000040/model.safetensors", "half");
  sweep_drafts(out.path());
  EXPECT_FALSE(fs::exists(out.path() / ".draft-step-000040"));
  EXPECT_EQ(checkpoint_names(out.path()).size(), 1U);
}

TEST(CheckpointFolder, an_out_folder_that_can_not_be_is_named) {
  const TemporaryFolder folder;
  const auto file = folder.write("file", "");
  const auto prepared = prepare_out_folder(file / "out");
  ASSERT_FALSE(prepared);
  EXPECT_EQ(describe(prepared.error()),
            "--out " + (file / "out").string() + ": can't be created: Not a directory");
  EXPECT_TRUE(prepare_out_folder(folder.path() / "a/b"));
  EXPECT_TRUE(fs::is_empty(folder.path() / "a/b"));
}

TEST(DurableFile, hashes_what_it_wrote) {
  const TemporaryFolder folder;
  const auto digest = write_durably(folder.path() / "f", "abc");
  ASSERT_TRUE(digest);
  EXPECT_EQ(digest->bytes, 3);
  EXPECT_EQ(digest->sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-4
  EXPECT_TRUE(verify_file(folder.path() / "f", *digest));
}

TEST(DurableFile, a_full_disk_is_an_error_with_its_cause) {
  auto file = DurableFile::create("/dev/full");
  ASSERT_TRUE(file);
  const auto written = file->write(std::as_bytes(std::span("text")));
  ASSERT_FALSE(written);
  EXPECT_EQ(describe(written.error()), "/dev/full: can't be written: No space left on device");
}

}  // namespace
}  // namespace tj::trainer
