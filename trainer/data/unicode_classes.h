// What a character is to GPT-2's tokenizer: the Unicode properties that its pattern asks for. Of
// Unicode 16, as Hugging Face's tokenizers have it, whose ids ours must equal.
#pragma once
#include <cstdint>

namespace tj::trainer {

enum class CharacterClass : std::uint8_t {
  other,
  letter,  // \p{L}
  number,  // \p{N}
  space,   // \s
};

CharacterClass class_of(char32_t code_point);

}  // namespace tj::trainer
