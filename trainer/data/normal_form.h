// Unicode's normal form C (UAX 15): letters and their accents as one character where there is one.
// As Hugging Face's tokenizers have it, whose tables are of an older Unicode; ids must equal
// theirs.
#pragma once
#include <string>
#include <string_view>

namespace tj::trainer {

/// False for nearly all text: it is in form C as it stands. `text` must be valid UTF-8.
bool may_need_composing(std::string_view text);

/// `text` in form C. It must be valid UTF-8.
std::string composed(std::string_view text);

}  // namespace tj::trainer
