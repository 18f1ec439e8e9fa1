// `trainer prepare tokenizer`: learns a byte-level BPE from text, as GPT-2's, and writes it as a
// tokenizer.json. The result depends on the text and the options, not on the number of workers.
//
// Workers count GPT-2's words in the numbered parts that prepare_plan.h cuts (word_counts.h bounds
// the memory); then one thread merges (bpe_training.h). The file appears whole, at the end.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/prepare_plan.h"
#include "trainer/data/word_counts.h"
#include "trainer/values/failure.h"

namespace tj::trainer {

/// The special token, the 256 bytes and a merge; and as many as an id may have.
inline constexpr std::int64_t kTrainedVocabularyMin = 258;
inline constexpr std::int64_t kTrainedVocabularyMax = 1 << 20;

struct TrainTokenizerOptions {
  std::vector<std::string> inputs;
  std::string output;
  std::int64_t vocabulary_size = 0;
  std::int64_t min_frequency = 2;
  std::string format;  // folder, jsonl, wiki; empty: the files say it
  std::string field = "text";
  int workers = 0;  // 0: one for each usable core
  WordLimits limits = {};
  std::int64_t part_bytes = kPartBytes;  // of text that a worker takes at once
  bool operator==(const TrainTokenizerOptions&) const = default;
};

struct TrainTokenizerProgress {
  bool is_merging = false;
  std::int64_t bytes_done = 0;  // of text
  std::int64_t bytes = 0;
  std::int64_t words = 0;  // different ones in memory
  int halvings = 0;        // 1 of 2^halvings of the long words is used
  std::int64_t tokens = 0;
  std::int64_t tokens_wanted = 0;
  double seconds = 0;        // since the beginning
  double phase_seconds = 0;  // since counting, or merging, began
};

/// counting 37 % | 384.0 of 1024.0 MB | 1,234,567 words | 18.2 MB/s | ETA 35 s
/// merging 37 % | 7,812 of 21,128 tokens | ETA 12 s
std::string progress_line(const TrainTokenizerProgress& progress);

struct TrainTokenizerHooks {
  std::function<void(const TrainTokenizerProgress&)> progress;  // from the calling thread
  std::function<int()> stop_signal = [] { return 0; };          // from any thread; not 0: stop now
  std::chrono::milliseconds progress_interval{5000};
};

struct TrainTokenizerEnd {
  std::optional<Failure> failure;
  TrainTokenizerProgress progress;
  std::int64_t merges = 0;
  double bytes_per_token = 0;  // of the text it learned from
};

/// Needs workers >= 1 and a vocabulary size within the bounds above.
TrainTokenizerEnd train_tokenizer(const TrainTokenizerOptions& options,
                                  const TrainTokenizerHooks& hooks);

}  // namespace tj::trainer
