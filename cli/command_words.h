// The words behind "--" on a command line: a program and its arguments, taken as they are.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tj {

/// `shown` is what the help calls them ("-- COMMAND..."); none is no error here.
void add_command_words(CLI::App& command, std::vector<std::string>& words,
                       const std::string& shown);

}  // namespace tj
