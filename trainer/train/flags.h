// The command line of `trainer train`, and of what else workloads do: which flags exist and which
// were given, as texts. Their meaning is in plan.h.
#pragma once
#include <optional>
#include <string>
#include <string_view>

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

/// Null: the workload has none of this name.
const WorkloadCommand* find_command(const WorkloadEntry& entry, std::string_view name);

/// The workload whose command `name` is meant; one of them has it. Without --model the only one
/// that has. Fails with Code::invalid, listing the models that can be asked for it.
Result<Choice> choose_command(Registry registry, std::string_view name,
                              const std::optional<std::string>& model);

/// The flags of a workload's command, and those that all commands have. Fails as
/// parse_train_flags().
Result<ParsedFlags> parse_command_flags(int argc, const char* const* argv,
                                        const WorkloadEntry& workload,
                                        const WorkloadCommand& command);

/// Those of `trainer plan`: `own`, those of `trainer train` that change what a step costs, and the
/// workload's. Fails as parse_train_flags().
Result<ParsedFlags> parse_plan_flags(int argc, const char* const* argv,
                                     const WorkloadEntry& workload, std::span<const Flag> own);

}  // namespace tj::trainer
