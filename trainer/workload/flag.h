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

/// A variable that sets a flag where nobody has given it: of the start scripts that people bring.
struct EnvironmentFlag {
  const char* variable;
  const char* flag;  // with its dashes
  /// Its number is the samples of a rank's pass: times passes and ranks it is the flag's.
  bool is_of_pass = false;
};

}  // namespace tj::trainer
