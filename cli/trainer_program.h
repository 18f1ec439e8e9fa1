// Where the program `trainer` lies: beside tj, in one build tree, or where TJ_TRAINER_PATH says.
#pragma once
#include <string>
#include <vector>

namespace tj {

/// Folders that are looked through before those of PATH.
std::vector<std::string> program_folders();

/// The path of `trainer`; empty where there is none.
std::string find_trainer();

}  // namespace tj
