// The command `trainer prepare lerobot`: its flags, what it prints, how it ends.
#pragma once
#include <string>
#include <vector>

namespace tj::trainer {

/// `arguments` without the program's and the command's names. Returns the exit code.
int run_prepare_lerobot(const std::vector<std::string>& arguments);

}  // namespace tj::trainer
