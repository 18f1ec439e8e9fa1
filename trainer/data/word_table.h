// Words and how often each occurred.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tj::trainer {

/// The same on every machine: which words a training leaves out depends on it. MurmurHash64A
/// (Austin Appleby, public domain).
inline std::uint64_t word_hash(std::string_view word) {
  constexpr std::uint64_t kFactor = 0xc6a4a7935bd1e995U;
  const auto mixed = [](std::uint64_t value) {
    value *= kFactor;
    return (value ^ value >> 47) * kFactor;
  };
  std::uint64_t hash = word.size() * kFactor;
  while (word.size() >= 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, word.data(), 8);
    hash = (hash ^ mixed(eight)) * kFactor;
    word.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, word.data(), word.size());
  hash = (hash ^ rest) * kFactor;
  hash = (hash ^ hash >> 47) * kFactor;
  return hash ^ hash >> 47;
}

/// Open addressing; the bytes of all words lie in one string, at most 4 GiB.
class WordTable {
 public:
  struct Word {
    std::uint64_t hash = 0;
    std::uint64_t count = 0;
    std::uint32_t begin = 0;
    std::uint32_t bytes = 0;
  };

  void add(std::string_view word, std::uint64_t hash, std::uint64_t count);
  /// Leaves out the words of which `keeps` says no.
  void retain(const std::function<bool(const Word&)>& keeps);
  void clear();

  std::size_t size() const { return words_.size(); }
  std::size_t bytes() const { return text_.size(); }
  const std::vector<Word>& words() const { return words_; }
  std::string_view text_of(const Word& word) const {
    return std::string_view(text_).substr(word.begin, word.bytes);
  }

 private:
  void place_all(std::size_t slot_count);

  std::vector<Word> words_;           // in the order in which they came
  std::vector<std::uint32_t> slots_;  // 1 + index of a word; 0: free. A power of two of them
  std::string text_;
};

}  // namespace tj::trainer
