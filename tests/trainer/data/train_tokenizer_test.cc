#include "trainer/data/train_tokenizer.h"
#include "tests/places.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tests/temporary_folder.h"
#include "trainer/data/tokenizer_json.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

const fs::path kChinese = fs::path(source_dir()) / "tests/trainer/data/chinese";

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct Bench {
  TemporaryFolder folder;
  fs::path output = folder.path() / "tokenizer.json";

  TrainTokenizerOptions options(int workers = 1) const {
    return {.inputs = {(kChinese / "text.txt").string()},
            .output = output.string(),
            .vocabulary_size = 600,
            .workers = workers};
  }
  std::string error_of(const TrainTokenizerOptions& chosen) const {
    const auto end = train_tokenizer(chosen, {});
    if (!end.failure) return "";
    return std::to_string(end.failure->exit_code) + " " + end.failure->message;
  }
  /// What it learns from one text, as the file.
  std::string learned(const TrainTokenizerOptions& chosen) const {
    EXPECT_EQ(error_of(chosen), "");
    const auto text = content_of(chosen.output);
    fs::remove(chosen.output);
    return text;
  }
};

TEST(TrainTokenizer, writes_the_file_that_hugging_face_writes_of_the_same_text) {
  const Bench bench;
  EXPECT_EQ(bench.learned(bench.options()), content_of(kChinese / "tokenizer.json"));
}

TEST(TrainTokenizer, any_number_of_workers_gives_the_same_file) {
  const Bench bench;
  std::mt19937 dice(3);
  std::string lines;
  for (int i = 0; i < 20'000; ++i) {
    lines += "word" + std::to_string(i % 997) + " \xe4\xba\xba\xe5\xb7\xa5 long";
    for (int letter = 0; letter < 16; ++letter) lines += static_cast<char>('a' + dice() % 26);
    lines += "\n";
  }
  bench.folder.write("text/a.txt", lines);
  bench.folder.write("text/b.txt", "more");
  auto options = bench.options();
  options.inputs = {(bench.folder.path() / "text").string()};
  options.limits = {.words_max = 9'000, .bytes_max = 1 << 20};  // of 20,000 long ones
  options.part_bytes = 64 << 10;
  const auto first = bench.learned(options);
  for (const int workers : {2, 5}) {
    options.workers = workers;
    EXPECT_EQ(bench.learned(options), first) << workers;
  }
}

TEST(TrainTokenizer, documents_are_read_as_prepare_reads_them) {
  const Bench bench;
  bench.folder.write("a.jsonl", "{\"body\": \"xyxyxy xyxy\", \"text\": \"abab\"}\n");
  auto options = bench.options();
  options.inputs = {(bench.folder.path() / "a.jsonl").string()};
  options.vocabulary_size = 258;
  options.field = "body";
  const auto spelled = spelled_from_tokenizer_json(bench.learned(options));
  ASSERT_TRUE(spelled) << describe(spelled.error());
  EXPECT_EQ(spelled->merges, (std::vector<SpelledBpe::Merge>{{"x", "y"}}));
  EXPECT_EQ(spelled->ids.at("xy"), 257);
  EXPECT_EQ(spelled->ids.at("<|endoftext|>"), 0);
}

TEST(TrainTokenizer, a_text_that_is_too_small_gives_fewer_tokens) {
  const Bench bench;
  auto options = bench.options();
  options.vocabulary_size = 100'000;
  const auto end = train_tokenizer(options, {});
  ASSERT_FALSE(end.failure) << end.failure->message;
  EXPECT_LT(end.progress.tokens, 1500);
  EXPECT_EQ(end.progress.tokens, 257 + end.merges);
  EXPECT_GT(end.bytes_per_token, 1);
}

TEST(TrainTokenizer, asked_to_stop_it_writes_nothing) {
  const Bench bench;
  const auto options = bench.options();
  for (const int questions : {0, 2, 40}) {  // before counting, within it, while it merges
    std::atomic<int> asked = 0;
    const TrainTokenizerHooks hooks{.progress = {},
                                    .stop_signal = [&] { return ++asked > questions ? 15 : 0; }};
    const auto end = train_tokenizer(options, hooks);
    ASSERT_TRUE(end.failure) << questions;
    EXPECT_EQ(end.failure->exit_code, exit_code::kInterrupted);
    EXPECT_TRUE(fs::is_empty(bench.folder.path())) << "neither the file nor a draft";
  }
}

TEST(TrainTokenizer, what_can_not_be_is_named_before_the_work) {
  const Bench bench;
  auto options = bench.options();
  bench.folder.write("tokenizer.json", "mine");
  EXPECT_EQ(bench.error_of(options),
            "78 --output " + bench.output.string() + ": is there already; another name is needed");
  EXPECT_EQ(content_of(bench.output), "mine");
  options.output = (bench.folder.path() / "no/where.json").string();
  EXPECT_EQ(bench.error_of(options), "78 --output " + options.output + ": can't be written: " +
                                         (bench.folder.path() / "no").string() + " is no folder");
  options.output = (bench.folder.path() / "new.json").string();
  options.inputs = {(bench.folder.path() / "nothing").string()};
  EXPECT_EQ(bench.error_of(options), "65 --input " + options.inputs.front() +
                                         ": does not exist; it must be a file or a folder of text");
}

TEST(TrainTokenizer, progress_says_how_far_and_how_fast) {
  TrainTokenizerProgress progress{.is_merging = false,
                                  .bytes_done = 20'000'000,
                                  .bytes = 100'000'000,
                                  .words = 12'345,
                                  .tokens = 0,
                                  .tokens_wanted = 21'128,
                                  .seconds = 2,
                                  .phase_seconds = 2};
  EXPECT_EQ(progress_line(progress),
            "counting 20 % | 20.0 of 100.0 MB | 12,345 words | 10.0 MB/s | ETA 8 s");
  progress.is_merging = true;
  progress.tokens = 5'282;
  EXPECT_EQ(progress_line(progress), "merging 25 % | 5,282 of 21,128 tokens | ETA 6 s");
}

}  // namespace
}  // namespace tj::trainer
