// Cuts text into the words of GPT-2's tokenizer, within which alone pairs are merged. The Unicode
// tables are PCRE2's.
#pragma once
#include <memory>
#include <string_view>

namespace tj::trainer {

class Gpt2Words {
 public:
  Gpt2Words();
  Gpt2Words(Gpt2Words&& other) noexcept;
  ~Gpt2Words();

  /// The word that `text` has at byte `at`; never empty. `text` must be valid UTF-8, `at` lie
  /// inside of it at the beginning of a word.
  std::string_view word_at(std::string_view text, std::size_t at);

 private:
  struct Pattern;
  std::unique_ptr<Pattern> pattern_;
};

}  // namespace tj::trainer
