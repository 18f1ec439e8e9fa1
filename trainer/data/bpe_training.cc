#include "trainer/data/bpe_training.h"

#include <algorithm>
#include <unordered_map>

#include "trainer/data/bpe.h"
#include "trainer/data/pair_counts.h"

namespace tj::trainer {
namespace {

using WordIndices = std::vector<std::uint32_t>;

/// A pair and words that may have it. A pair can have several: words in which it arose later.
struct Candidate {
  std::int64_t count = 0;  // when it was put here; it may have become less since
  std::uint64_t pair = 0;
  std::uint32_t step = 0;  // in which it was put here: no two of a pair have the same
  WordIndices words;

  /// The order of a heap: what comes first is greater.
  bool operator<(const Candidate& other) const {
    if (count != other.count) return count < other.count;
    return pair != other.pair ? pair > other.pair : step > other.step;
  }
};

class Learning {
 public:
  Learning(std::span<const CountedWord> words, const BpeTraining& training)
      : training_(training),
        learned_{.tokens = training.first_tokens, .merges = {}, .text_tokens = 0} {
    for (std::size_t id = 0; id < learned_.tokens.size(); ++id)
      ids_.emplace(learned_.tokens[id], static_cast<std::uint32_t>(id));
    std::size_t bytes = 0;
    for (const auto& word : words) bytes += word.text.size();
    symbols_.reserve(bytes);
    words_.reserve(words.size());
    for (const auto& word : words) add_word(word);
    push_new_pairs();
  }

  LearnedBpe run() {
    while (learned_.tokens.size() < training_.vocabulary_size) {
      if (training_.should_stop && training_.should_stop(learned_.tokens.size())) break;
      if (!take_next()) break;
      merge(best_);
    }
    keep_last_of_each();
    for (const Word& word : words_) learned_.text_tokens += word.size * word.count;
    return std::move(learned_);
  }

 private:
  struct Word {
    std::uint32_t begin = 0;  // in symbols_
    std::uint32_t size = 0;
    std::int64_t count = 0;
  };

  void add_word(const CountedWord& counted) {
    const Word word{.begin = static_cast<std::uint32_t>(symbols_.size()),
                    .size = static_cast<std::uint32_t>(counted.text.size()),
                    .count = static_cast<std::int64_t>(counted.count)};
    const auto index = static_cast<std::uint32_t>(words_.size());
    for (const char byte : counted.text)
      symbols_.push_back(training_.byte_ids[static_cast<std::uint8_t>(byte)]);
    words_.push_back(word);
    for (std::uint32_t i = word.begin; i + 1 < word.begin + word.size; ++i)
      change(symbols_[i], symbols_[i + 1], word.count, index);
  }

  /// `count` more or less of a pair in the word `index`.
  void change(std::uint32_t left, std::uint32_t right, std::int64_t count, std::uint32_t index) {
    const std::uint64_t key = pair_key(left, right);
    auto& pair = pairs_.at(key);
    pair.count += count;
    if (count < 0) return;
    if (pair.mark == PairCounts::kNone) {
      pair.mark = static_cast<std::uint32_t>(arisen_.size());
      arisen_.push_back({.count = 0, .pair = key, .step = step_, .words = {}});
    }
    auto& words = arisen_[pair.mark].words;
    if (words.empty() || words.back() != index) words.push_back(index);
  }

  void push_new_pairs() {
    for (auto& candidate : arisen_) {
      auto& pair = pairs_.at(candidate.pair);
      pair.mark = PairCounts::kNone;
      if (pair.count < training_.pair_count_min) continue;  // it only becomes less
      candidate.count = pair.count;
      heap_.push_back(std::move(candidate));
      std::ranges::push_heap(heap_, std::less<>());
    }
    arisen_.clear();
    ++step_;
  }

  /// Into best_ the most frequent pair; false: none is frequent enough.
  bool take_next() {
    while (!heap_.empty()) {
      std::ranges::pop_heap(heap_, std::less<>());
      best_ = std::move(heap_.back());
      heap_.pop_back();
      const std::int64_t count = pairs_.count_of(best_.pair);
      if (count == best_.count) return count >= training_.pair_count_min;
      if (count <= 0) continue;
      best_.count = count;
      heap_.push_back(std::move(best_));
      std::ranges::push_heap(heap_, std::less<>());
    }
    return false;
  }

  void merge(const Candidate& best) {
    const LearnedBpe::Merge pair{.left = static_cast<std::uint32_t>(best.pair >> 32),
                                 .right = static_cast<std::uint32_t>(best.pair)};
    std::string text = learned_.tokens[pair.left] + learned_.tokens[pair.right];
    const auto [known, is_new] =
        ids_.try_emplace(std::move(text), static_cast<std::uint32_t>(learned_.tokens.size()));
    if (is_new) learned_.tokens.push_back(known->first);
    learned_.merges.push_back(pair);
    for (const std::uint32_t index : best.words) merge_in(index, pair, known->second);
    push_new_pairs();
  }

  /// From left to right, in place. A pair's own count stays: it is not asked for again.
  void merge_in(std::uint32_t index, LearnedBpe::Merge pair, std::uint32_t merged) {
    Word& word = words_[index];
    std::uint32_t* const symbols = symbols_.data() + word.begin;
    std::uint32_t size = 0;
    for (std::uint32_t i = 0; i < word.size; ++i) {
      const bool is_pair =
          symbols[i] == pair.left && i + 1 < word.size && symbols[i + 1] == pair.right;
      if (!is_pair) {
        symbols[size++] = symbols[i];
        continue;
      }
      if (size > 0) {
        change(symbols[size - 1], pair.left, -word.count, index);
        change(symbols[size - 1], merged, word.count, index);
      }
      if (++i + 1 < word.size) {
        change(pair.right, symbols[i + 1], -word.count, index);
        change(merged, symbols[i + 1], word.count, index);
      }
      symbols[size++] = merged;
    }
    word.size = size;
  }

  /// A pair that was merged twice counts where it was the second time, as in a file that has it
  /// twice.
  void keep_last_of_each() {
    std::unordered_map<std::uint64_t, std::size_t> last;
    for (std::size_t i = 0; i < learned_.merges.size(); ++i)
      last[pair_key(learned_.merges[i].left, learned_.merges[i].right)] = i;
    if (last.size() == learned_.merges.size()) return;
    std::vector<LearnedBpe::Merge> kept;
    for (std::size_t i = 0; i < learned_.merges.size(); ++i) {
      const auto& merge = learned_.merges[i];
      if (last.at(pair_key(merge.left, merge.right)) == i) kept.push_back(merge);
    }
    learned_.merges = std::move(kept);
  }

  const BpeTraining& training_;
  LearnedBpe learned_;
  std::unordered_map<std::string, std::uint32_t> ids_;  // of learned_.tokens
  std::vector<std::uint32_t> symbols_;                  // of all words
  std::vector<Word> words_;
  PairCounts pairs_;
  std::vector<Candidate> arisen_;  // in this step
  std::vector<Candidate> heap_;
  Candidate best_;
  std::uint32_t step_ = 0;
};

}  // namespace

LearnedBpe learn_bpe(std::span<const CountedWord> words, const BpeTraining& training) {
  return Learning(words, training).run();
}

}  // namespace tj::trainer
