// A conversation that somebody asks to be gone on with, as JSON says it. Pure.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"
#include "trainer/workloads/qwen_vggt/chat.h"

namespace tj::trainer {

struct OpenTurns {
  std::vector<ChatTurn> turns;                  // the last one is the user's
  std::vector<std::filesystem::path> pictures;  // in the order of their marks
};

/// {"conversations": [{"from": "human", "value": "<image>Where to?"}], "images": ["a.jpg"]}, as
/// training data has it, or {"messages": [{"role": "user", "content": "<image>Where to?"}],
/// "images": [...]}. "image" may be one file; relative ones lie in `folder`. Answers at the end are
/// left out: they are what is asked for. Fails with Code::invalid, and names the field.
Result<OpenTurns> open_turns_from(std::string_view text, const std::filesystem::path& folder);

}  // namespace tj::trainer
