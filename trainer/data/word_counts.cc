#include "trainer/data/word_counts.h"

#include <algorithm>

#include "contract/utf8.h"
#include "trainer/data/gpt2_words.h"

namespace tj::trainer {
namespace {

constexpr std::size_t kShortWordBytes = 15;
/// So often long words are halved before short ones are.
constexpr int kShortWordHead = 8;
/// What a thread counts before it gives it to all.
constexpr std::size_t kOwnWordsMax = 1 << 15;
constexpr std::size_t kOwnBytesMax = 1 << 20;

int halvings_of(std::size_t word_bytes, int halvings) {
  return word_bytes > kShortWordBytes ? halvings : std::max(0, halvings - kShortWordHead);
}

/// By the upper bits of the hash; the lower ones say where it lies.
bool is_kept(const WordTable::Word& word, int halvings) {
  const int zeros = halvings_of(word.bytes, halvings);
  return zeros == 0 || word.hash >> (64 - zeros) == 0;
}

}  // namespace

void WordCounts::add(const WordTable& counted) {
  std::array<std::vector<const WordTable::Word*>, 64> by_shard;
  for (const auto& word : counted.words()) by_shard[word.hash >> 20 & 63].push_back(&word);
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    Shard& shard = shards_[i];
    const std::lock_guard lock(shard.mutex);
    const auto words_before = shard.table.size();
    const auto bytes_before = shard.table.bytes();
    for (const auto* const word : by_shard[i]) {
      if (is_kept(*word, halvings_))
        shard.table.add(counted.text_of(*word), word->hash, word->count);
    }
    words_ += static_cast<std::int64_t>(shard.table.size() - words_before);
    bytes_ += static_cast<std::int64_t>(shard.table.bytes() - bytes_before);
  }
  if (is_too_much()) halve();
}

bool WordCounts::is_too_much() const {
  return words_ > static_cast<std::int64_t>(limits_.words_max) ||
         bytes_ > static_cast<std::int64_t>(limits_.bytes_max);
}

/// A thread that adds under the old number does so before this one comes to the shard, which then
/// leaves it out.
void WordCounts::halve() {
  const std::lock_guard one_at_a_time(halving_);
  while (is_too_much() && halvings_ < 63) {
    ++halvings_;
    for (Shard& shard : shards_) {
      const std::lock_guard lock(shard.mutex);
      const auto words_before = shard.table.size();
      const auto bytes_before = shard.table.bytes();
      shard.table.retain([&](const auto& word) { return is_kept(word, halvings_); });
      words_ -= static_cast<std::int64_t>(words_before - shard.table.size());
      bytes_ -= static_cast<std::int64_t>(bytes_before - shard.table.bytes());
    }
  }
}

std::vector<CountedWord> WordCounts::all() const {
  std::vector<CountedWord> all;
  all.reserve(static_cast<std::size_t>(words_.load()));
  for (const Shard& shard : shards_) {
    for (const auto& word : shard.table.words()) {
      const int halvings = halvings_of(word.bytes, halvings_);
      all.push_back({.text = shard.table.text_of(word), .count = word.count << halvings});
    }
  }
  return all;
}

void WordCounter::count(std::string_view text) {
  std::string repaired;
  if (valid_utf8_bytes(text) != text.size()) {
    repaired = with_invalid_utf8_replaced(text);
    text = repaired;
  }
  for (std::size_t at = 0; at < text.size();) {
    auto word = gpt2_word_at(text, at);
    at += word.size();
    while (word.size() > kTrainedWordBytesMax) {
      const auto piece = utf8_prefix(word, kTrainedWordBytesMax);
      add(piece);
      word.remove_prefix(piece.size());
    }
    add(word);
  }
}

void WordCounter::flush() {
  shared_.add(table_);
  table_.clear();
}

void WordCounter::add(std::string_view word) {
  table_.add(word, word_hash(word), 1);
  if (table_.size() > kOwnWordsMax || table_.bytes() > kOwnBytesMax) flush();
}

}  // namespace tj::trainer
