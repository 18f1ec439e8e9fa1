// The words of a whole text, counted by many threads in bounded memory.
//
// Where there are too many different ones, which Chinese has soon (a clause is a word), words are
// left out by their hash alone: half of them, then three quarters, and so on, and those that stay
// count twice, four times. So what stays depends on the set of words, not on threads or their
// order, and the sums over all words stay what they were on average. Short words, which are few and
// frequent, are left out last.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/word_table.h"

namespace tj::trainer {

/// Of different words in memory. 22 bytes of a word cost training about 0.5 kB in all.
struct WordLimits {
  std::size_t words_max = 2'000'000;
  std::size_t bytes_max = 48 << 20;
  bool operator==(const WordLimits&) const = default;
};

/// A longer word is counted as pieces of so much, cut between two characters.
inline constexpr std::size_t kTrainedWordBytesMax = 1024;

struct CountedWord {
  std::string_view text;
  std::uint64_t count = 0;
};

class WordCounts {
 public:
  explicit WordCounts(WordLimits limits) : limits_(limits) {}

  /// Adds what one thread has counted. Any thread may call it.
  void add(const WordTable& counted);

  std::int64_t words() const { return words_; }
  /// How often the words were halved: 1 of 2^halvings of the long ones is left.
  int halvings() const { return halvings_; }
  /// All of them, in no order; the views live as long as this object. No thread may add any more.
  std::vector<CountedWord> all() const;

 private:
  struct Shard {
    std::mutex mutex;  // guards table
    WordTable table;
  };
  bool is_too_much() const;
  void halve();

  const WordLimits limits_;
  std::array<Shard, 64> shards_;
  std::atomic<std::int64_t> words_ = 0;
  std::atomic<std::int64_t> bytes_ = 0;
  std::atomic<int> halvings_ = 0;
  std::mutex halving_;  // one thread at a time halves
};

/// One thread's counter in front of the shared one.
class WordCounter {
 public:
  explicit WordCounter(WordCounts& shared) : shared_(shared) {}

  /// Counts GPT-2's words of a text. Invalid UTF-8 counts as U+FFFD, as it is encoded.
  void count(std::string_view text);
  /// Gives what it has counted to all; needed at the end.
  void flush();

 private:
  void add(std::string_view word);

  WordCounts& shared_;
  WordTable table_;
};

}  // namespace tj::trainer
