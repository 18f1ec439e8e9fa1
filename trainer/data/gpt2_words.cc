#include "trainer/data/gpt2_words.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "contract/result.h"

namespace tj::trainer {
namespace {
// openai/gpt-2: src/encoder.py. \s is spelled out as Unicode's White_Space, which is what Python's
// and Rust's libraries mean by it; PCRE2's own has U+180E too.
constexpr std::string_view kPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\t-\r\x{85}\p{Z}\p{L}\p{N}]+)"
    R"(|[\t-\r\x{85}\p{Z}]+(?![^\t-\r\x{85}\p{Z}])|[\t-\r\x{85}\p{Z}]+)";
}  // namespace

struct Gpt2Words::Pattern {
  pcre2_code* code = nullptr;
  pcre2_match_data* match = nullptr;
  ~Pattern() {
    pcre2_match_data_free(match);
    pcre2_code_free(code);
  }
};

Gpt2Words::Gpt2Words() : pattern_(std::make_unique<Pattern>()) {
  int error_number = 0;
  PCRE2_SIZE error_at = 0;
  pattern_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kPattern.data()), kPattern.size(),
                                 PCRE2_UTF | PCRE2_ANCHORED, &error_number, &error_at, nullptr);
  TJ_CHECK(pattern_->code != nullptr, "PCRE2 refuses the pattern: " + std::to_string(error_number));
  // Only faster; where the machine forbids generated code, the interpreter does the same.
  (void)pcre2_jit_compile(pattern_->code, PCRE2_JIT_COMPLETE);
  pattern_->match = pcre2_match_data_create_from_pattern(pattern_->code, nullptr);
}
Gpt2Words::Gpt2Words(Gpt2Words&& other) noexcept = default;
Gpt2Words::~Gpt2Words() = default;

std::string_view Gpt2Words::word_at(std::string_view text, std::size_t at) {
  const int found = pcre2_match(pattern_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                text.size(), at, PCRE2_NO_UTF_CHECK, pattern_->match, nullptr);
  TJ_CHECK(found > 0, "every text has a word; PCRE2 says " + std::to_string(found));
  const PCRE2_SIZE end = pcre2_get_ovector_pointer(pattern_->match)[1];
  return text.substr(at, end - at);
}

}  // namespace tj::trainer
