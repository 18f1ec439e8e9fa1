#include "trainer/data/prompt/prompt.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "contract/utf8.h"

namespace tj::trainer {
namespace {

constexpr int kStateWords = 256;
constexpr std::size_t kShownBytesMax = 80;

/// What Python's str.isspace() knows beyond one byte (Unicode 15: White_Space, or bidirectional
/// type B, S or WS).
constexpr std::array<std::string_view, 19> kWideSpaces{
    "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
    "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
    "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

bool is_space(char letter) {
  return letter == ' ' || (letter >= '\t' && letter <= '\r') || (letter >= 0x1c && letter <= 0x1f);
}

/// Bytes of the space that `text` begins, or ends, with; 0: with none.
std::size_t space_bytes(std::string_view text, bool at_end) {
  if (text.empty()) return 0;
  if (is_space(at_end ? text.back() : text.front())) return 1;
  for (const auto wide : kWideSpaces) {
    if (at_end ? text.ends_with(wide) : text.starts_with(wide)) return wide.size();
  }
  return 0;
}

std::string_view stripped(std::string_view text) {
  while (const auto bytes = space_bytes(text, false)) text.remove_prefix(bytes);
  while (const auto bytes = space_bytes(text, true)) text.remove_suffix(bytes);
  return text;
}

/// np.digitize(value, np.linspace(-1, 1, 257)[:-1]) - 1: how many of the borders -1 + n/128, n from
/// 0 to 255, are not above it, less one. They are exact.
int state_word(float value) {
  const auto steps = std::floor((static_cast<double>(value) + 1) * (kStateWords / 2));
  return static_cast<int>(std::clamp<double>(steps, -1, kStateWords - 1));
}

}  // namespace

std::string clean_task(std::string_view task) {
  std::string clean(stripped(task));
  std::ranges::replace(clean, '_', ' ');
  std::ranges::replace(clean, '\n', ' ');
  return clean;
}

std::string pi05_text(std::string_view task, std::span<const float> state) {
  std::string words;
  for (const auto value : state)
    words += (words.empty() ? "" : " ") + std::to_string(state_word(value));
  return "Task: " + clean_task(task) + ", State: " + words + ";\nAction: ";
}

Result<Prompt> make_prompt(const EncodeText& encode, const PromptRule& rule, std::string_view task,
                           std::span<const float> state) {
  const bool is_pi0 = rule.kind == PromptKind::pi0;
  auto text = encode(is_pi0 ? clean_task(task) : pi05_text(task, state));
  if (!text) return text.error();
  Prompt prompt{.ids = {rule.bos}};
  prompt.ids.insert(prompt.ids.end(), text->begin(), text->end());
  if (is_pi0) {
    const auto end = encode("\n");
    if (!end) return end.error();
    prompt.ids.insert(prompt.ids.end(), end->begin(), end->end());
  }
  prompt.count = static_cast<std::int64_t>(prompt.ids.size());
  if (prompt.count > rule.length && !rule.may_be_cut)
    return Error{.code = Code::invalid,
                 .message = "the prompt of the task \"" +
                            std::string(utf8_prefix(clean_task(task), kShownBytesMax)) + "\" has " +
                            std::to_string(prompt.count) + " tokens, and the model takes " +
                            std::to_string(rule.length) + ": --prompt-tokens " +
                            std::to_string(prompt.count) +
                            " takes it whole, --cut-prompts its begin",
                 .subject = {}};
  prompt.ids.resize(static_cast<std::size_t>(rule.length));
  return prompt;
}

}  // namespace tj::trainer
