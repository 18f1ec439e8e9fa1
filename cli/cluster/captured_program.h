// Runs a program to its end and takes what it prints; its standard error stays the person's.
// Blocks: nothing can be asked of the server before the answer is there.
#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj {

struct ProgramRun {
  std::string program;  // without a slash it is looked for in PATH
  std::vector<std::string> args;
  std::vector<std::string> env;  // NAME=value, over ours
  bool keeps_stdin = false;      // else it reads an empty one
  std::chrono::milliseconds deadline{60'000};
  std::size_t output_bytes_max = 1024 * 1024;
};

/// Its standard output. not_found: there is no such program; timeout; invalid: it prints too much,
/// can't be started, or ends with another code than 0. Messages go on after the program's name.
Result<std::string> run_captured(const ProgramRun& run);

}  // namespace tj
