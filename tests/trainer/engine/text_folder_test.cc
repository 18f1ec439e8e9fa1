#include "trainer/data/text_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/trainer/engine/temporary_folder.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

std::string all_of(const TextFolder& text) {
  std::vector<std::uint8_t> tokens(static_cast<std::size_t>(text.token_count()));
  text.read(0, tokens);
  return {tokens.begin(), tokens.end()};
}

std::string error_of(const fs::path& folder) {
  const auto text = TextFolder::open(folder);
  return text ? "" : describe(text.error());
}

TEST(TextFolder, joins_files_in_order_of_path_with_an_end_after_each) {
  const TemporaryFolder folder;
  folder.write("b.txt", "second");
  folder.write("a/z.txt", "first");
  folder.write("c.txt", "");
  folder.write(".hidden/d.txt", "unseen");
  const auto text = TextFolder::open(folder.path());
  ASSERT_TRUE(text) << describe(text.error());
  EXPECT_EQ(text->file_count(), 2U);
  EXPECT_EQ(all_of(*text), std::string("first\0second\0", 13));
}

TEST(TextFolder, reads_any_range_across_files) {
  const TemporaryFolder folder;
  for (int i = 0; i < 5; ++i)
    folder.write(std::to_string(i),
                 std::string(static_cast<std::size_t>(i + 1), static_cast<char>('a' + i)));
  const auto text = TextFolder::open(folder.path());
  ASSERT_TRUE(text);
  const std::string whole = all_of(*text);
  for (std::size_t begin = 0; begin < whole.size(); ++begin) {
    for (std::size_t end = begin + 1; end <= whole.size(); ++end) {
      std::vector<std::uint8_t> tokens(end - begin);
      text->read(static_cast<std::int64_t>(begin), tokens);
      EXPECT_EQ(std::string(tokens.begin(), tokens.end()), whole.substr(begin, end - begin));
    }
  }
}

TEST(TextFolder, reads_a_config_map_volume_once) {
  const TemporaryFolder folder;
  folder.write("..2026_01_01/text", "hello");
  fs::create_directory_symlink("..2026_01_01", folder.path() / "..data");
  fs::create_symlink("..data/text", folder.path() / "text");
  const auto text = TextFolder::open(folder.path());
  ASSERT_TRUE(text) << describe(text.error());
  EXPECT_EQ(all_of(*text), std::string("hello\0", 6));
}

TEST(TextFolder, follows_links_to_folders_and_survives_a_loop_of_them) {
  const TemporaryFolder folder;
  folder.write("real/a", "a");
  fs::create_directory_symlink("..", folder.path() / "real/up");
  const auto text = TextFolder::open(folder.path());
  ASSERT_TRUE(text) << describe(text.error());
  EXPECT_EQ(text->file_count(), 1U);
}

TEST(TextFolder, says_what_is_wrong_with_a_folder) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EQ(error_of(folder.path()),
            "--data " + path + ": is empty: 0 files with 0 bytes in them; it must hold text");
  const auto file = folder.write("empty", "");
  EXPECT_EQ(error_of(folder.path()),
            "--data " + path + ": is empty: 1 files with 0 bytes in them; it must hold text");
  EXPECT_EQ(error_of(file),
            "--data " + file.string() + ": is not a folder; it must be a folder of text files");
  EXPECT_EQ(error_of(folder.path() / "no"),
            "--data " + path + "/no: does not exist; it must be a folder of text files");
}

TEST(TextFolder, names_the_file_that_can_not_be_read) {
  const TemporaryFolder folder;
  folder.write("a", "text");
  fs::create_symlink("nowhere", folder.path() / "b");
  EXPECT_EQ(error_of(folder.path()), "training text " + (folder.path() / "b").string() +
                                         ": can't be read: No such file or directory");
}

TEST(TextFolder, names_what_it_has_no_permission_for) {
  const TemporaryFolder folder;
  const auto file = folder.write("a", "text");
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(file, fs::perms::none);
  const bool is_root = ::geteuid() == 0;  // root may read everything: be nobody for a moment
  constexpr uid_t kNobody = 65534;
  if (is_root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const std::string error = error_of(folder.path());
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(error, "training text " + file.string() + ": can't be read: Permission denied");
}

}  // namespace
}  // namespace tj::trainer
