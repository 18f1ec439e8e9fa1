// What a shell runs to complete `tj` and `kubectl-tj`: each Tab asks the program (complete.h).
#pragma once
#include <string>

namespace tj {

/// For "bash", "zsh" or "fish"; empty: for no other.
std::string completion_script(const std::string& shell);

}  // namespace tj
