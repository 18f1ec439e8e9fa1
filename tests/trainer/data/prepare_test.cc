#include "trainer/data/prepare.h"
#include "tests/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/temporary_folder.h"
#include "trainer/data/token_source.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

const std::string kGpt2 = source_dir() + "/tests/trainer/data/gpt2";
constexpr std::int64_t kSmallPart = 1000;

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Every file of a folder, by name.
std::map<std::string, std::string> all_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = content_of(entry.path());
  return files;
}

std::string lines_of_text(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += "Hello world " + std::to_string(i) + (i % 5 == 0 ? "\n\n" : "  \n") +
            "\xe4\xba\xba\xe5\xb7\xa5\xe6\x99\xba\xe8\x83\xbd\xe3\x80\x82\n";
  }
  return text;
}

struct Bench {
  TemporaryFolder folder;
  fs::path input = folder.path() / "text";
  fs::path output = folder.path() / "tokens";

  PrepareOptions options(int workers = 1) const {
    return {.inputs = {input.string()},
            .output = output.string(),
            .workers = workers,
            .part_bytes = kSmallPart};
  }
  PrepareEnd prepare(const PrepareOptions& chosen) const { return trainer::prepare(chosen, {}); }
  std::string error_of(const PrepareOptions& chosen) const {
    const auto end = prepare(chosen);
    if (!end.failure) return "";
    return std::to_string(end.failure->exit_code) + " " + end.failure->message;
  }
};

std::vector<std::int32_t> tokens_of(const fs::path& folder) {
  const std::vector<std::string> paths{folder.string()};
  const auto source = TokenSource::open(paths, "--data");
  EXPECT_TRUE(source) << describe(source.error());
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(source->token_count()));
  EXPECT_TRUE(source->read(0, tokens));
  return tokens;
}

TEST(Prepare, bytes_come_out_as_the_text_folder_itself_reads_them) {
  Bench bench;
  bench.folder.write("text/a.txt", lines_of_text(200));
  bench.folder.write("text/b.txt", "short");
  bench.folder.write("text/c/d.txt", "also short");
  const auto end = bench.prepare(bench.options());
  ASSERT_FALSE(end.failure) << end.failure->message;
  EXPECT_EQ(tokens_of(bench.output), tokens_of(bench.input));
  EXPECT_GT(end.manifest.train.size(), 5U);
}

TEST(Prepare, any_number_of_workers_and_any_part_size_give_the_same_tokens) {
  Bench bench;
  bench.folder.write("text/a.txt", lines_of_text(300));
  bench.folder.write("text/b.txt", lines_of_text(7));
  auto options = bench.options();
  options.tokenizer = "gpt2-bpe";
  options.vocabulary = kGpt2;
  std::map<std::string, std::string> first;
  for (const int workers : {1, 2, 4}) {
    options.workers = workers;
    options.output = (bench.folder.path() / ("tokens-" + std::to_string(workers))).string();
    ASSERT_FALSE(bench.prepare(options).failure);
    if (workers == 1) first = all_in(options.output);
    EXPECT_EQ(all_in(options.output), first) << workers;
  }
  options.output = (bench.folder.path() / "whole").string();
  options.part_bytes = 1 << 20;
  ASSERT_FALSE(bench.prepare(options).failure);
  EXPECT_EQ(tokens_of(options.output), tokens_of(bench.folder.path() / "tokens-1"));
}

TEST(Prepare, the_tokenizer_lies_beside_its_tokens) {
  Bench bench;
  bench.folder.write("text/a.txt", lines_of_text(20));
  const std::string chinese = source_dir() + "/tests/trainer/data/chinese/tokenizer.json";
  auto options = bench.options();
  options.tokenizer = "bpe";
  options.vocabulary = chinese;
  const auto end = bench.prepare(options);
  ASSERT_FALSE(end.failure) << end.failure->message;
  EXPECT_EQ(content_of(bench.output / "tokenizer.json"), content_of(chinese));
  const auto manifest = token_manifest_from(content_of(bench.output / "manifest.json"));
  ASSERT_TRUE(manifest);
  const auto& file = manifest->tokenizer_file;
  EXPECT_EQ(file.file, "tokenizer.json");
  EXPECT_TRUE(verify_file(bench.output / file.file, {.bytes = file.bytes, .sha256 = file.sha256}));
  EXPECT_EQ(manifest->made_from.tokenizer, "bpe");
  EXPECT_EQ(manifest->made_from.vocabulary, 600);
  const auto tokens = tokens_of(bench.output);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 0), 1) << "one document ends";

  options.tokenizer = "gpt2-bpe";
  options.vocabulary = kGpt2;
  options.output = (bench.folder.path() / "of-two-files").string();
  ASSERT_FALSE(bench.prepare(options).failure);
  options.vocabulary = options.output;  // the file that was made of them
  options.output = (bench.folder.path() / "of-one-file").string();
  ASSERT_FALSE(bench.prepare(options).failure);
  EXPECT_EQ(all_in(options.output), all_in(options.vocabulary));
}

TEST(Prepare, a_stop_keeps_what_is_done_and_the_next_run_goes_on) {
  Bench bench;
  bench.folder.write("text/a.txt", lines_of_text(300));
  auto options = bench.options();
  ASSERT_FALSE(bench.prepare(options).failure);
  const auto expected = all_in(bench.output);
  options.output = (bench.folder.path() / "stopped").string();
  std::atomic<int> asked = 0;
  const PrepareHooks hooks{.progress = {}, .stop_signal = [&] { return ++asked > 12 ? 15 : 0; }};
  const auto stopped = trainer::prepare(options, hooks);
  ASSERT_TRUE(stopped.failure);
  EXPECT_EQ(stopped.failure->exit_code, exit_code::kInterrupted);
  EXPECT_FALSE(fs::exists(fs::path(options.output) / "manifest.json"));
  EXPECT_FALSE(TokenSource::open(std::vector{options.output}, "--data"));
  const auto resumed = bench.prepare(options);
  ASSERT_FALSE(resumed.failure) << resumed.failure->message;
  EXPECT_GT(resumed.progress.bytes_kept, 0);
  EXPECT_EQ(all_in(options.output), expected);
}

TEST(Prepare, a_damaged_token_file_is_made_again) {
  Bench bench;
  bench.folder.write("text/a.txt", lines_of_text(100));
  ASSERT_FALSE(bench.prepare(bench.options()).failure);
  const auto expected = all_in(bench.output);
  // As a run leaves it that was killed before the commit, on a disk that lost a byte since.
  fs::rename(bench.output / "manifest.json", bench.folder.path() / "manifest.json");
  const auto manifest = token_manifest_from(content_of(bench.folder.path() / "manifest.json"));
  ASSERT_TRUE(manifest);
  std::ofstream(bench.output / ".prepare.json") << identity_text(manifest->made_from);
  std::string file = content_of(bench.output / "train-000001.tok");
  file[200] ^= 1;
  std::ofstream(bench.output / "train-000001.tok", std::ios::binary) << file;
  fs::resize_file(bench.output / "train-000002.tok", 300);
  ASSERT_FALSE(bench.prepare(bench.options()).failure);
  EXPECT_EQ(all_in(bench.output), expected);
}

TEST(Prepare, a_second_run_has_nothing_to_do_and_other_options_are_refused) {
  Bench bench;
  bench.folder.write("text/a.txt", lines_of_text(10));
  ASSERT_FALSE(bench.prepare(bench.options()).failure);
  const auto again = bench.prepare(bench.options());
  ASSERT_FALSE(again.failure);
  EXPECT_EQ(again.progress.bytes_kept, again.progress.bytes);
  auto other = bench.options();
  other.val = "0.5";
  EXPECT_EQ(bench.error_of(other),
            "78 --output " + bench.output.string() +
                ": already holds tokens for another input or other options: val_fraction is "
                "\"0.5\" and was \"0\"; give another folder");
}

TEST(Prepare, documents_are_held_out_whole) {
  Bench bench;
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "{\"text\": \"document " + std::to_string(i) + "\"}\n";
  bench.folder.write("text/a.jsonl", lines);
  auto options = bench.options(2);
  options.val = "0.2";
  const auto end = bench.prepare(options);
  ASSERT_FALSE(end.failure) << end.failure->message;
  std::int64_t train = 0;
  std::int64_t val = 0;
  for (const auto& file : end.manifest.train) train += file.documents;
  for (const auto& file : end.manifest.val) val += file.documents;
  EXPECT_EQ(train + val, 200);
  EXPECT_NEAR(static_cast<double>(val), 40, 15);
  const auto tokens = tokens_of(bench.output);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), 0), train);
}

/// Every kind of share gives the same folder.
TEST(Prepare, a_share_is_a_number_or_percent) {
  Bench bench;
  bench.folder.write("text/a.txt", lines_of_text(300));
  for (const auto& [text, number] :
       {std::pair("20%", "0.2"), std::pair("0.3%", "0.003"), std::pair("1e-2", "0.01")}) {
    auto options = bench.options();
    options.output = (bench.folder.path() / text).string();
    options.val = text;
    const auto end = bench.prepare(options);
    ASSERT_FALSE(end.failure) << end.failure->message;
    EXPECT_EQ(end.manifest.made_from.val_fraction, number);
  }
}

/// Both sides together are the text, whatever the parts; one file is enough.
TEST(Prepare, plain_text_is_held_out_in_pieces) {
  Bench bench;
  const std::string text = lines_of_text(20'000);
  bench.folder.write("text/a.txt", text);
  std::vector<std::int32_t> first;
  for (const std::int64_t part_bytes : {std::int64_t{1} << 20, std::int64_t{50'000}}) {
    auto options = bench.options(2);
    options.val = "10%";
    options.part_bytes = part_bytes;
    options.output = (bench.folder.path() / std::to_string(part_bytes)).string();
    const auto end = bench.prepare(options);
    ASSERT_FALSE(end.failure) << end.failure->message;
    const std::vector paths{options.output};
    const auto val = TokenSource::open(paths, "--eval-data", TokenPart::val);
    ASSERT_TRUE(val) << describe(val.error());
    EXPECT_EQ(val->token_count(), held_out_tokens(options.output));
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(val->token_count()));
    ASSERT_TRUE(val->read(0, tokens));
    const auto train = tokens_of(options.output);
    const auto ends = std::ranges::count(tokens, 0) + std::ranges::count(train, 0);
    EXPECT_EQ(tokens.size() + train.size() - static_cast<std::size_t>(ends), text.size());
    EXPECT_GT(tokens.size(), text.size() / 30);
    EXPECT_LT(tokens.size(), text.size() / 4);
    if (first.empty()) first = tokens;
    EXPECT_EQ(tokens, first) << part_bytes;
  }
}

TEST(Prepare, bad_input_is_named_and_nothing_is_lost) {
  Bench bench;
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "{\"text\": \"document " + std::to_string(i) + "\"}\n";
  const auto file = bench.folder.write("text/a.jsonl", lines + "{\"text\": \"cut");
  EXPECT_EQ(
      bench.error_of(bench.options()).substr(0, 100 + file.string().size()),
      ("65 " + file.string() + ": at byte " + std::to_string(lines.size()) +
       ": the line is no JSON: [json.exception.parse_error.101] parse error at line 1, column 14: "
       "syntax error")
          .substr(0, 100 + file.string().size()));
  EXPECT_TRUE(fs::exists(bench.output / "train-000000.tok"));
}

TEST(Prepare, options_that_can_not_be_are_named) {
  Bench bench;
  bench.folder.write("text/a.txt", "text");
  const auto with = [&](auto&& change) {
    auto options = bench.options();
    change(options);
    return bench.error_of(options);
  };
  EXPECT_EQ(with([](auto& o) { o.tokenizer = "bert"; }),
            "78 --tokenizer: is \"bert\"; it must be byte, bpe or gpt2-bpe");
  EXPECT_EQ(with([](auto& o) { o.tokenizer = "gpt2-bpe"; }),
            "78 --vocabulary: is missing; gpt2-bpe needs a tokenizer.json, or a folder with "
            "vocab.json and merges.txt");
  EXPECT_EQ(with([](auto& o) { o.vocabulary = "x"; }),
            "78 --vocabulary: is given, but the tokenizer byte has none");
  for (const char* const share : {"100%", "-1%", "%", "1 %", "nan"}) {
    EXPECT_EQ(with([&](auto& o) { o.val = share; }),
              "78 --val: is \"" + std::string(share) +
                  "\"; it must be a share such as 1% or 0.01, from 0 to less than 1");
  }
  EXPECT_EQ(with([](auto& o) { o.val = "1"; }),
            "78 --val: is \"1\"; it must be a share such as 1% or 0.01, from 0 to less than 1");
  bench.folder.write("tokens/notes.txt", "mine");
  EXPECT_EQ(with([](auto&) {}), "78 --output " + bench.output.string() +
                                    ": holds notes.txt; it must be an empty folder");
}

TEST(Prepare, progress_says_how_far_and_how_fast) {
  const PrepareProgress progress{.bytes_done = 37'000'000,
                                 .bytes_kept = 17'000'000,
                                 .bytes = 100'000'000,
                                 .parts_done = 5,
                                 .parts = 12,
                                 .workers = 2,
                                 .seconds = 2};
  EXPECT_EQ(progress_line(progress), "37 % | 37.0 of 100.0 MB | 5/12 parts | 10.0 MB/s | ETA 6 s");
}

}  // namespace
}  // namespace tj::trainer
