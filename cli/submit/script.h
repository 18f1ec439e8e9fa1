// A script of this machine that a job runs: it travels in a ConfigMap that each worker mounts.
#pragma once
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj::submit {

inline constexpr std::size_t kScriptBytesMax = 1024 * 1024;  // of all data of a ConfigMap
inline constexpr const char* kScriptFolder = "/etc/trainingjob/script";

struct Script {
  std::string file_name;  // in the ConfigMap and in kScriptFolder
  std::string text;       // UTF-8
};

/// A regular file of text within the bound. The error's subject is --script.
Result<Script> read_script(const std::string& path);

/// The words before the script's path: what its #! line says, as the kernel takes it (a program
/// and at most one argument), else by the end of its name. The error's subject is --script.
Result<std::vector<std::string>> interpreter_of(const Script& script);

}  // namespace tj::submit
