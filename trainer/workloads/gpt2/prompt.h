// The text that `trainer sample` goes on with. Torch-free.
#pragma once
#include <cstdint>
#include <string>

#include "contract/result.h"
#include "trainer/workload/flag.h"

namespace tj::trainer {

inline constexpr std::int64_t kPromptBytesMax = 16 << 20;

/// By --prompt or --prompt-file, where "-" is standard input; empty without both. A stop ends the
/// wait for standard input: what came so far is then the text. Fails with Code::invalid when both
/// are given, and otherwise as the file says.
Result<std::string> read_prompt(const Flags& flags);

}  // namespace tj::trainer
