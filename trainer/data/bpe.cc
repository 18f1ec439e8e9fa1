#include "trainer/data/bpe.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "contract/utf8.h"
#include "trainer/data/gpt2_words.h"
#include "trainer/data/normal_form.h"
#include "trainer/data/qwen2_words.h"
#include "trainer/data/word_table.h"

namespace tj::trainer {
namespace {
constexpr std::size_t kCachedWords = 1 << 17;  // 8 MiB
constexpr std::size_t kIdsAtATime = 4096;
/// In a longer word it pays to keep the pairs in a heap.
constexpr std::size_t kSearchedBytesMax = 96;

/// A token that a text holds as it is.
struct CutToken {
  std::size_t at = 0;  // of none: the text's end
  std::size_t bytes = 0;
  std::uint32_t id = 0;
};

/// The first, and of several there the longest. `firsts`: with which bytes tokens begin.
CutToken first_cut(std::string_view text, const std::map<std::string, std::uint32_t>& tokens,
                   const std::string& firsts) {
  for (auto at = text.find_first_of(firsts); at < text.size();
       at = text.find_first_of(firsts, at + 1)) {
    CutToken found{.at = at};
    for (const auto& [token, id] : tokens)
      if (token.size() > found.bytes && text.substr(at).starts_with(token))
        found = {.at = at, .bytes = token.size(), .id = id};
    if (found.bytes > 0) return found;
  }
  return {.at = text.size()};
}
}  // namespace

BpeEncoder::BpeEncoder(const BpeVocabulary& vocabulary)
    : vocabulary_(vocabulary), cache_(kCachedWords) {
  for (const auto& [token, id] : vocabulary.cut) cut_firsts_ += token.front();
}

void BpeEncoder::encode(std::string_view text, const TakeIds& take) {
  std::string repaired;
  if (valid_utf8_bytes(text) != text.size()) {
    repaired = with_invalid_utf8_replaced(text);
    text = repaired;
  }
  while (!text.empty()) {
    const auto token = first_cut(text, vocabulary_.cut, cut_firsts_);
    encode_plain(text.substr(0, token.at), take);
    if (token.at == text.size()) break;
    ids_.push_back(token.id);
    text.remove_prefix(token.at + token.bytes);
  }
  if (!ids_.empty()) take(ids_);
  ids_.clear();
}

void BpeEncoder::encode_plain(std::string_view text, const TakeIds& take) {
  std::string form_c;
  if (vocabulary_.is_composed && may_need_composing(text)) {
    form_c = composed(text);
    text = form_c;
  }
  const auto word_at = vocabulary_.words == WordRule::qwen2 ? qwen2_word_at : gpt2_word_at;
  for (std::size_t at = 0; at < text.size();) {
    const auto word = word_at(text, at);
    encode_word(word);
    at += word.size();
    give_if_many(take);
  }
}

void BpeEncoder::give_if_many(const TakeIds& take) {
  if (ids_.size() < kIdsAtATime) return;
  take(ids_);
  ids_.clear();
}

void BpeEncoder::encode_word(std::string_view word) {
  if (word.size() > CachedWord::kBytesMax) return merge_word(word);
  CachedWord& known = cache_[word_hash(word) % kCachedWords];
  if (std::string_view(known.word.data(), known.bytes) == word) {
    ids_.insert(ids_.end(), known.ids.begin(), known.ids.begin() + known.id_count);
    return;
  }
  const std::size_t before = ids_.size();
  merge_word(word);
  const std::size_t count = ids_.size() - before;
  if (count > CachedWord::kIdsMax) return;
  known.bytes = static_cast<std::uint8_t>(word.size());
  known.id_count = static_cast<std::uint8_t>(count);
  std::ranges::copy(word, known.word.begin());
  std::copy_n(ids_.end() - static_cast<std::ptrdiff_t>(count), count, known.ids.begin());
}

/// Merges the pair of lowest rank, of several the leftmost, until none is left.
void BpeEncoder::merge_word(std::string_view word) {
  if (word.size() > kSearchedBytesMax) return merge_long_word(word);
  std::array<std::uint32_t, kSearchedBytesMax> ids;
  std::array<std::uint32_t, kSearchedBytesMax> ranks;  // of each with the one behind it
  const auto& merges = vocabulary_.merges;
  std::size_t count = word.size();
  for (std::size_t i = 0; i < count; ++i)
    ids[i] = vocabulary_.byte_ids[static_cast<std::uint8_t>(word[i])];
  for (std::size_t i = 0; i + 1 < count; ++i) ranks[i] = merges.rank_of(ids[i], ids[i + 1]);
  while (count > 1) {
    const auto end = ranks.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    const auto lowest = std::min_element(ranks.begin(), end);
    if (*lowest == MergeTable::kNone) break;
    const auto at = static_cast<std::size_t>(lowest - ranks.begin());
    ids[at] = merges.merged(*lowest);
    --count;
    const std::size_t moved = (count - at - 1) * sizeof(std::uint32_t);
    std::memmove(ids.data() + at + 1, ids.data() + at + 2, moved);
    std::memmove(ranks.data() + at, ranks.data() + at + 1, moved);
    if (at + 1 < count) ranks[at] = merges.rank_of(ids[at], ids[at + 1]);
    if (at > 0) ranks[at - 1] = merges.rank_of(ids[at - 1], ids[at]);
  }
  ids_.insert(ids_.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
}

/// The same with a heap, which holds each pair that has ever stood side by side; those that have
/// gone since are known by their ids. n log n, however long the word.
void BpeEncoder::merge_long_word(std::string_view word) {
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
    left.id = vocabulary_.merges.merged(best.rank);
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
  const std::uint32_t rank = vocabulary_.merges.rank_of(symbol.id, right_id);
  if (rank == MergeTable::kNone) return;
  candidates_.push_back({.rank = rank, .left = left, .left_id = symbol.id, .right_id = right_id});
  std::ranges::push_heap(candidates_, std::greater<>());
}

}  // namespace tj::trainer
