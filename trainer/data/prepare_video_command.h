// The command `trainer prepare video`: its flags, what it prints, how it ends.
#pragma once
#include <string>
#include <vector>

namespace tj::trainer {

/// `arguments` without the program's and the command's names. Returns the exit code.
int run_prepare_video(const std::vector<std::string>& arguments);

}  // namespace tj::trainer
