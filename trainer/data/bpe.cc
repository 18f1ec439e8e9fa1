#include "trainer/data/bpe.h"

#include <algorithm>
#include <functional>

#include "contract/utf8.h"

namespace tj::trainer {
namespace {
/// A full cache is emptied: cheaper than to know what is old, and English fills it once in a GB.
/// An entry takes up to about 400 bytes, all of them at most 25 MB.
constexpr std::size_t kCachedWordsMax = 1 << 16;
/// Longer words hardly ever come again.
constexpr std::size_t kCachedWordBytesMax = 48;
constexpr std::size_t kIdsAtATime = 4096;
}  // namespace

void BpeEncoder::encode(std::string_view text, const TakeIds& take) {
  std::string repaired;
  if (valid_utf8_bytes(text) != text.size()) {
    repaired = with_invalid_utf8_replaced(text);
    text = repaired;
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto word = words_.word_at(text, at);
    encode_word(word);
    at += word.size();
    if (ids_.size() < kIdsAtATime && at < text.size()) continue;
    take(ids_);
    ids_.clear();
  }
}

void BpeEncoder::encode_word(std::string_view word) {
  if (word.size() > kCachedWordBytesMax) return merge_word(word);
  const auto known = cache_.find(word);
  if (known != cache_.end()) {
    ids_.insert(ids_.end(), known->second.begin(), known->second.end());
    return;
  }
  const std::size_t before = ids_.size();
  merge_word(word);
  if (cache_.size() == kCachedWordsMax) cache_.clear();
  cache_.emplace(word, std::vector<std::uint32_t>(
                           ids_.begin() + static_cast<std::ptrdiff_t>(before), ids_.end()));
}

/// Merges the pair of lowest rank until none is left. A heap holds each pair that has ever stood
/// side by side; those that have gone since are known by their ids. n log n, however long the word.
void BpeEncoder::merge_word(std::string_view word) {
  symbols_.clear();
  candidates_.clear();
  const auto size = static_cast<std::int32_t>(word.size());
  for (std::int32_t i = 0; i < size; ++i) {
    const auto byte = static_cast<std::uint8_t>(word[static_cast<std::size_t>(i)]);
    symbols_.push_back(
        {.id = vocabulary_.byte_ids[byte], .previous = i - 1, .next = i + 1 < size ? i + 1 : -1});
  }
  for (std::int32_t i = 0; i + 1 < size; ++i) consider(i);
  while (!candidates_.empty()) {
    std::ranges::pop_heap(candidates_, std::greater<>());
    const Candidate best = candidates_.back();
    candidates_.pop_back();
    Symbol& left = symbols_[static_cast<std::size_t>(best.left)];
    if (left.is_merged || left.id != best.left_id || left.next < 0) continue;
    Symbol& right = symbols_[static_cast<std::size_t>(left.next)];
    if (right.id != best.right_id) continue;
    left.id = best.merged_id;
    right.is_merged = true;
    left.next = right.next;
    if (left.next >= 0) symbols_[static_cast<std::size_t>(left.next)].previous = best.left;
    if (left.previous >= 0) consider(left.previous);
    consider(best.left);
  }
  for (std::int32_t i = 0; i >= 0 && i < size; i = symbols_[static_cast<std::size_t>(i)].next)
    ids_.push_back(symbols_[static_cast<std::size_t>(i)].id);
}

/// Adds the pair of `left` and its neighbour, if it can be merged.
void BpeEncoder::consider(std::int32_t left) {
  const Symbol& symbol = symbols_[static_cast<std::size_t>(left)];
  if (symbol.next < 0) return;
  const std::uint32_t right_id = symbols_[static_cast<std::size_t>(symbol.next)].id;
  const auto merge = vocabulary_.merges.find(pair_key(symbol.id, right_id));
  if (merge == vocabulary_.merges.end()) return;
  candidates_.push_back({.rank = merge->second.rank,
                         .left = left,
                         .left_id = symbol.id,
                         .right_id = right_id,
                         .merged_id = merge->second.id});
  std::ranges::push_heap(candidates_, std::greater<>());
}

}  // namespace tj::trainer
