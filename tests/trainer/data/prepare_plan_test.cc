#include "trainer/data/prepare_plan.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {

std::vector<InputFile> files_of(const std::vector<std::int64_t>& sizes) {
  std::vector<InputFile> files;
  for (const auto size : sizes) files.push_back({.name = std::to_string(size), .bytes = size});
  return files;
}

std::vector<std::string> names_of(const std::vector<std::string>& roots,
                                  const std::string& format = "") {
  const auto inputs = find_inputs(roots, format);
  if (!inputs) return {describe(inputs.error())};
  std::vector<std::string> names;
  for (const auto& input : *inputs) names.push_back(input.name);
  return names;
}

TEST(PreparePlan, large_files_are_cut_and_small_ones_joined) {
  EXPECT_EQ(plan_parts(files_of({25, 3, 4, 5, 10, 1}), 10),
            (std::vector<Part>{{{0, 0, 10}},
                               {{0, 10, 20}},
                               {{0, 20, 25}},
                               {{1, 0, 3}, {2, 0, 4}},
                               {{3, 0, 5}},
                               {{4, 0, 10}},
                               {{5, 0, 1}}}));
}

TEST(PreparePlan, every_byte_is_in_one_part_and_none_is_too_large) {
  for (std::int64_t part_bytes = 1; part_bytes < 40; ++part_bytes) {
    const auto files = files_of({7, 1, 30, 2, 2, 2, 19, 40});
    std::vector<std::int64_t> covered(files.size());
    for (const auto& part : plan_parts(files, part_bytes)) {
      std::int64_t bytes = 0;
      for (const auto& slice : part) {
        EXPECT_EQ(slice.begin, covered[slice.file]);
        covered[slice.file] = slice.end;
        bytes += slice.end - slice.begin;
      }
      EXPECT_LE(bytes, part_bytes);
      EXPECT_GT(bytes, 0);
    }
    for (std::size_t i = 0; i < files.size(); ++i) EXPECT_EQ(covered[i], files[i].bytes);
  }
}

TEST(PreparePlan, inputs_are_named_below_their_root_and_empty_ones_left_out) {
  const TemporaryFolder folder;
  folder.write("b/x.txt", "x");
  folder.write("a/y.txt", "y");
  folder.write("empty.txt", "");
  const auto single = folder.write("z.txt", "z");
  EXPECT_EQ(names_of({folder.path().string()}),
            (std::vector<std::string>{"a/y.txt", "b/x.txt", "z.txt"}));
  EXPECT_EQ(names_of({single.string(), (folder.path() / "a").string()}),
            (std::vector<std::string>{"z.txt", "y.txt"}));
}

TEST(PreparePlan, what_can_not_be_input_is_named) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EQ(names_of({path + "/no"})[0],
            "--input " + path + "/no: does not exist; it must be a file or a folder of text");
  EXPECT_EQ(names_of({path})[0],
            "--input " + path + ": holds no file with anything in it; it must hold text");
  folder.write("a.txt", "text");
  folder.write("b.jsonl", "{}");
  EXPECT_EQ(names_of({path})[0], path + "/b.jsonl: looks like jsonl, and " + path +
                                     "/a.txt like folder; --format says which it is");
  EXPECT_EQ(names_of({path}, "folder"), (std::vector<std::string>{"a.txt", "b.jsonl"}));
  EXPECT_EQ(names_of({path}, "wiki")[0],
            path +
                "/a.txt: at byte 0: begins neither with <doc nor with <mediawiki, as --format "
                "wiki asks for");
}

TEST(PreparePlan, about_the_asked_share_is_held_out) {
  int count = 0;
  for (int i = 0; i < 10'000; ++i) count += is_held_out("wiki_00", i * 100, 0.1) ? 1 : 0;
  EXPECT_NEAR(count, 1000, 100);
  EXPECT_FALSE(is_held_out("x", 0, 0));
}

TEST(PreparePlan, names_and_sizes_make_the_hash) {
  auto files = files_of({1, 2});
  const auto hash = inputs_sha256(files);
  files[0].path = "/elsewhere";
  EXPECT_EQ(inputs_sha256(files), hash);
  files[0].bytes = 3;
  EXPECT_NE(inputs_sha256(files), hash);
}

}  // namespace
}  // namespace tj::trainer
