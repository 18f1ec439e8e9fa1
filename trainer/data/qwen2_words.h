// Cuts text into the words of Qwen2's tokenizer, within which alone pairs are merged.
#pragma once
#include <cstddef>
#include <string_view>

namespace tj::trainer {

/// As its tokenizer.json has it (transformers: models/qwen2/tokenization_qwen2.py); of the
/// alternatives the first that matches counts.
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// The word that `text` has at byte `at`; never empty. `text` must be valid UTF-8, `at` lie
/// inside of it at the beginning of a word.
std::string_view qwen2_word_at(std::string_view text, std::size_t at);

}  // namespace tj::trainer
