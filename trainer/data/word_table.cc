#include "trainer/data/word_table.h"

#include <algorithm>

namespace tj::trainer {
namespace {
constexpr std::size_t kSlotsMin = 1024;
}  // namespace

void WordTable::add(std::string_view word, std::uint64_t hash, std::uint64_t count) {
  if (2 * (words_.size() + 1) > slots_.size()) place_all(std::max(kSlotsMin, 2 * slots_.size()));
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; slots_[at] != 0; at = (at + 1) & mask) {
    Word& known = words_[slots_[at] - 1];
    if (known.hash != hash || text_of(known) != word) continue;
    known.count += count;
    return;
  }
  words_.push_back({.hash = hash,
                    .count = count,
                    .begin = static_cast<std::uint32_t>(text_.size()),
                    .bytes = static_cast<std::uint32_t>(word.size())});
  text_ += word;
  slots_[at] = static_cast<std::uint32_t>(words_.size());
}

void WordTable::retain(const std::function<bool(const Word&)>& keeps) {
  WordTable kept;
  for (const Word& word : words_) {
    if (keeps(word)) kept.add(text_of(word), word.hash, word.count);
  }
  *this = std::move(kept);
}

void WordTable::clear() {
  words_.clear();
  text_.clear();
  std::ranges::fill(slots_, 0);
}

void WordTable::place_all(std::size_t slot_count) {
  slots_.assign(slot_count, 0);
  for (std::size_t i = 0; i < words_.size(); ++i) {
    std::size_t at = words_[i].hash & (slot_count - 1);
    while (slots_[at] != 0) at = (at + 1) & (slot_count - 1);
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

}  // namespace tj::trainer
