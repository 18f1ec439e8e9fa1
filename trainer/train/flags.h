// The command line of `trainer train`: which flags exist and which were given, as texts. Their
// meaning is in plan.h.
#pragma once
#include <optional>
#include <string>

#include "contract/result.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

struct ParsedFlags {
  Flags flags;
  std::optional<std::string> shown;  // the text to print instead of a run
};

/// The text of --model, wherever it stands; the other flags are not looked at.
std::optional<std::string> model_flag(int argc, const char* const* argv);

/// JSON, for programs that try them all: of each name for --model its workload and its preset.
std::string models_json(Registry registry);

/// The engine's flags and those of the chosen workload. Fails with Code::invalid on an unknown
/// flag, a missing value or a missing --data or --out.
Result<ParsedFlags> parse_train_flags(int argc, const char* const* argv, Registry registry,
                                      const WorkloadEntry& workload);

}  // namespace tj::trainer
