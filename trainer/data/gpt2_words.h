// Cuts text into the words of GPT-2's tokenizer, within which alone pairs are merged.
#pragma once
#include <cstddef>
#include <string_view>

namespace tj::trainer {

/// The word that `text` has at byte `at`; never empty. `text` must be valid UTF-8, `at` lie
/// inside of it at the beginning of a word.
std::string_view gpt2_word_at(std::string_view text, std::size_t at);

}  // namespace tj::trainer
