// One flag of the command line, and what was given: as text. What it means is said by whoever reads
// it through a FlagReader.
#pragma once
#include <functional>
#include <map>
#include <string>

namespace tj::trainer {

struct Flag {
  const char* name;  // with its dashes
  const char* help;
  bool is_switch = false;
  bool is_repeatable = false;
  bool required = false;
};

/// Flag name with its dashes -> text. A switch has the text "true"; values of a flag
/// that may come several times are joined by newlines. Absent: not given.
using Flags = std::map<std::string, std::string, std::less<>>;

}  // namespace tj::trainer
