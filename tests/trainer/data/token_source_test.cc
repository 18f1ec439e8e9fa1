#include "trainer/data/token_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/temporary_folder.h"
#include "tests/trainer/data/token_bytes.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

Result<TokenSource> open(const std::vector<fs::path>& paths) {
  std::vector<std::string> names(paths.begin(), paths.end());
  return TokenSource::open(names, "--data");
}

Ids all_of(const TokenSource& source) {
  Ids tokens(static_cast<std::size_t>(source.token_count()));
  const auto read = source.read(0, tokens);
  EXPECT_TRUE(read) << describe(read.error());
  return tokens;
}

std::string text_of(const TokenSource& source) {
  const Ids tokens = all_of(source);
  return {tokens.begin(), tokens.end()};
}

std::string error_of(const std::vector<fs::path>& paths) {
  const auto source = open(paths);
  return source ? "" : describe(source.error());
}

TEST(TokenSource, joins_the_files_of_a_text_folder_in_order_of_path_with_an_end_after_each) {
  const TemporaryFolder folder;
  folder.write("b.txt", "second");
  folder.write("a/z.txt", "first");
  folder.write("c.txt", "");
  folder.write(".hidden/d.txt", "unseen");
  const auto source = open({folder.path()});
  ASSERT_TRUE(source) << describe(source.error());
  EXPECT_EQ(source->file_count(), 2U);
  EXPECT_EQ(source->vocabulary(), 256);
  EXPECT_EQ(text_of(*source), std::string("first\0second\0", 13));
}

TEST(TokenSource, reads_any_range_across_files) {
  const TemporaryFolder text;
  const TemporaryFolder tokens;
  for (int i = 0; i < 4; ++i) {
    text.write(std::to_string(i), std::string(static_cast<std::size_t>(i + 1), 'a'));
    tokens.write(std::to_string(i) + ".bin", tokens_as({1, 2, 300}, 2));
  }
  for (const auto* folder : {&text, &tokens}) {
    const auto source = open({folder->path()});
    ASSERT_TRUE(source);
    const Ids whole = all_of(*source);
    for (std::size_t begin = 0; begin < whole.size(); ++begin) {
      for (std::size_t end = begin + 1; end <= whole.size(); ++end) {
        Ids part(end - begin);
        ASSERT_TRUE(source->read(static_cast<std::int64_t>(begin), part));
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<long>(begin)));
      }
    }
  }
}

TEST(TokenSource, reads_a_config_map_volume_once) {
  const TemporaryFolder folder;
  folder.write("..2026_01_01/text", "hello");
  fs::create_directory_symlink("..2026_01_01", folder.path() / "..data");
  fs::create_symlink("..data/text", folder.path() / "text");
  const auto source = open({folder.path()});
  ASSERT_TRUE(source) << describe(source.error());
  EXPECT_EQ(text_of(*source), std::string("hello\0", 6));
}

TEST(TokenSource, follows_links_to_folders_and_survives_a_loop_of_them) {
  const TemporaryFolder folder;
  folder.write("real/a", "a");
  fs::create_directory_symlink("..", folder.path() / "real/up");
  const auto source = open({folder.path()});
  ASSERT_TRUE(source) << describe(source.error());
  EXPECT_EQ(source->file_count(), 1U);
}

TEST(TokenSource, every_format_gives_the_same_tokens) {
  const TemporaryFolder folder;
  const std::vector<std::uint64_t> ids{1, 2, 300, 50256};
  folder.write("m.idx", megatron_index({3, 1}, 4, 4));
  const std::vector<fs::path> files{
      folder.write("a.tok", our_file(ids)), folder.write("b.bin", llmc_file(ids)),
      folder.write("c.bin", tokens_as(ids, 2)), folder.write("m.bin", tokens_as(ids, 4)),
      folder.path() / "m.idx"};
  for (const auto& file : files) {
    const auto source = open({file});
    ASSERT_TRUE(source) << describe(source.error());
    EXPECT_EQ(all_of(*source), (Ids{1, 2, 300, 50256})) << file;
  }
}

TEST(TokenSource, a_folder_of_tokens_leaves_out_what_is_held_out) {
  const TemporaryFolder folder;
  folder.write("fineweb_train_000001.bin", tokens_as({1}, 2));
  folder.write("fineweb_train_000002.bin", tokens_as({2}, 2));
  folder.write("fineweb_val_000000.bin", tokens_as({3}, 2));
  folder.write("values.bin", tokens_as({4}, 2));
  folder.write("meta.pkl", "x");
  const auto source = open({folder.path()});
  ASSERT_TRUE(source) << describe(source.error());
  EXPECT_EQ(all_of(*source), (Ids{1, 2, 4}));
  EXPECT_EQ(all_of(*open({folder.path() / "fineweb_val_000000.bin"})), (Ids{3}));
}

TEST(TokenSource, files_that_disagree_are_refused) {
  const TemporaryFolder folder;
  const auto first = folder.write("a.tok", our_file({1, 2}));
  const auto other_format = folder.write("b.bin", llmc_file({1}));
  const auto other_size = folder.write("c.tok", our_file({1}, 2, 1000));
  const std::string start = ": does not belong to one dataset with " + first.string() + ": ";
  EXPECT_EQ(error_of({first, other_format}),
            other_format.string() + start + "the format is llm.c .bin here and .tok there");
  EXPECT_EQ(error_of({first, other_size}),
            other_size.string() + start + "the vocabulary is 1000 here and 50257 there");
}

TEST(TokenSource, an_id_outside_of_the_vocabulary_is_named_with_its_offset) {
  const TemporaryFolder folder;
  const auto llmc = folder.write("a.bin", llmc_file({1, 50257}));
  const auto raw = folder.write("b.bin", tokens_as({9, 700}, 2));
  folder.write("m.idx", megatron_index({2}, 5, 8));
  const auto wide = folder.write("m.bin", tokens_as({9, ~0ULL}, 8));
  Ids tokens(2);
  const auto read_error = [&](const fs::path& path, std::int64_t vocabulary) {
    auto source = open({path});
    if (!source) return describe(source.error());
    if (vocabulary > 0) source->require_ids_below(vocabulary);
    const auto read = source->read(0, tokens);
    return read ? "" : describe(read.error());
  };
  EXPECT_EQ(read_error(llmc, 0),
            llmc.string() +
                ": at byte 1026: the token is 50257; it must be less than the vocabulary, 50257");
  EXPECT_EQ(read_error(raw, 0), "");
  EXPECT_EQ(
      read_error(raw, 256),
      raw.string() + ": at byte 2: the token is 700; it must be less than the vocabulary, 256");
  EXPECT_EQ(read_error(wide, 256), wide.string() +
                                       ": at byte 8: the token is 9223372036854775807; it must be "
                                       "less than the vocabulary, 256");
}

TEST(TokenSource, damage_is_found_by_the_first_read_of_its_chunk) {
  const TemporaryFolder folder;
  std::string bytes = our_file(std::vector<std::uint64_t>(kTokenChunkBytes, 7));
  bytes[kTokenHeaderBytes + kTokenChunkBytes] ^= 1;
  const auto path = folder.write("a.tok", bytes);
  const auto source = open({path});
  ASSERT_TRUE(source) << describe(source.error());
  Ids tokens(10);
  EXPECT_TRUE(source->read(0, tokens));
  const auto read = source->read(kTokenChunkBytes / 2 - 1, tokens);
  ASSERT_FALSE(read);
  EXPECT_NE(describe(read.error()).find(path.string() + ": at byte 65664: "), std::string::npos)
      << describe(read.error());
}

TEST(TokenSource, a_folder_that_is_not_finished_is_refused) {
  const TemporaryFolder folder;
  folder.write(".prepare.json", "{}");
  folder.write("train-000000.tok", our_file({1}));
  EXPECT_EQ(error_of({folder.path()}),
            "--data " + folder.path().string() +
                ": is not finished: `trainer prepare` was at work here; the same command again "
                "goes on");
}

TEST(TokenSource, says_what_is_wrong_with_a_folder) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EQ(error_of({folder.path()}),
            "--data " + path + ": is empty: 0 files with 0 bytes in them; it must hold text");
  const auto file = folder.write("empty", "");
  EXPECT_EQ(error_of({folder.path()}),
            "--data " + path + ": is empty: 1 files with 0 bytes in them; it must hold text");
  EXPECT_EQ(error_of({file}), file.string() + ": is empty");
  EXPECT_EQ(error_of({folder.path() / "no"}),
            "--data " + path + "/no: does not exist; it must be a folder of text files, or tokens");
}

TEST(TokenSource, names_the_file_that_can_not_be_read) {
  const TemporaryFolder folder;
  folder.write("a", "text");
  fs::create_symlink("nowhere", folder.path() / "b");
  EXPECT_EQ(error_of({folder.path()}),
            (folder.path() / "b").string() + ": can't be read: No such file or directory");
}

TEST(TokenSource, a_file_that_is_cut_while_it_is_read_ends_no_process) {
  const TemporaryFolder folder;
  const auto file = folder.write("a", std::string(20'000, 'a'));
  const auto source = open({folder.path()});
  ASSERT_TRUE(source);
  Ids tokens(10);
  EXPECT_TRUE(source->read(10'000, tokens));
  fs::resize_file(file, 4096);
  EXPECT_TRUE(source->read(4086, tokens));
  const auto read = source->read(4090, tokens);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().code, Code::invalid);  // another attempt may read it
  EXPECT_EQ(
      describe(read.error()),
      file.string() + ": can't be read at byte 4096: the file has been cut since it was opened");
}

TEST(TokenSource, names_what_it_has_no_permission_for) {
  const TemporaryFolder folder;
  const auto file = folder.write("a", "text");
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(file, fs::perms::none);
  const bool is_root = ::geteuid() == 0;  // root may read everything: be nobody for a moment
  constexpr uid_t kNobody = 65534;
  if (is_root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const std::string error = error_of({folder.path()});
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_TRUE(error.starts_with(file.string() + ": can't be read: Permission denied; user "))
      << error;
}

}  // namespace
}  // namespace tj::trainer
