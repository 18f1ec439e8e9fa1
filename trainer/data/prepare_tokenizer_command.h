// The command `trainer prepare tokenizer`: its flags, what it prints, how it ends.
#pragma once
#include <string>
#include <vector>

namespace tj::trainer {

/// `arguments` without the program's and the commands' names. Returns the exit code.
int run_prepare_tokenizer(const std::vector<std::string>& arguments);

}  // namespace tj::trainer
