// The command `trainer export`: its flags, what it prints, how it ends.
#pragma once
#include <string>
#include <vector>

namespace tj::trainer {

/// `arguments` without the program's and the command's name. Returns the exit code.
int run_export(const std::vector<std::string>& arguments);

}  // namespace tj::trainer
