// The command line of `trainer train`: which flags exist and which were given, as texts. Their
// meaning is in plan.h.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "contract/result.h"

namespace tj::trainer {

/// Flag name with its dashes -> text. A switch has the text "true"; values of a flag
/// that may come several times are joined by newlines. Absent: not given.
using Flags = std::map<std::string, std::string, std::less<>>;

struct ParsedFlags {
  Flags flags;
  std::optional<std::string> help;  // the text to print instead of a run
};

/// Fails with Code::invalid on an unknown flag, a missing value or a missing --data or --out.
Result<ParsedFlags> parse_train_flags(int argc, const char* const* argv);

}  // namespace tj::trainer
