// The words of a command whose flags CLI11 knows: read, or answered at once where they ask for help
// or are wrong. How such a command says that it has failed.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/values/failure.h"

namespace CLI {
class App;
}

namespace tj::trainer {

/// Reads `words` into what `command`, named as a person calls it ("trainer prepare"), was bound to.
/// An exit code where nothing is left to do: help was asked for and is printed, or the words are
/// wrong and it is said why.
std::optional<int> read_words(CLI::App& command, const std::vector<std::string>& words);

/// Says why `command` ends, as last words and as a line behind `line_start`, and returns the exit
/// code.
int fail_command(const std::string& command, const Failure& failure, const char* line_start = "");

}  // namespace tj::trainer
