// What a pi0 policy is told in words, and as ids: openpi's rules
// (src/openpi/models/tokenizer.py, PaligemmaTokenizer).
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

enum class PromptKind {
  pi0,   // the task
  pi05,  // the task, and the state in words
};

/// The task without white space around it (as Python's str.strip()), and with a space in place of
/// each `_` and each end of a line.
std::string clean_task(std::string_view task);

/// "Task: push the cube, State: 12 255;\nAction: ". `state` is normalised; each value is one of 256
/// words by where it lies in [-1, 1], -1 for one that lies below.
std::string pi05_text(std::string_view task, std::span<const float> state);

/// Ids of a text, without a begin of text.
using EncodeText = std::function<Result<std::vector<std::int32_t>>(std::string_view)>;

struct PromptRule {
  PromptKind kind = PromptKind::pi0;
  std::int64_t length = 48;  // ids that the model takes; pi05: 200
  bool may_be_cut = false;   // a longer prompt loses its end; else it is an error
  std::int32_t bos = 2;
};

struct Prompt {
  std::vector<std::int32_t> ids;  // so many as the rule says; 0 behind the text's own
  std::int64_t count = 0;         // of the text, before it was cut
};

/// pi0: begin of text, the task's ids, those of "\n". pi05: begin of text, those of pi05_text().
/// Fails with Code::invalid where the prompt is too long, and says what length it would take.
Result<Prompt> make_prompt(const EncodeText& encode, const PromptRule& rule, std::string_view task,
                           std::span<const float> state);

}  // namespace tj::trainer
