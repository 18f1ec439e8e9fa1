// The flags of `tj submit` that describe a job, as texts: what they mean is said by made_job.h.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tj::submit {

struct SubmitFlags {
  std::string name;
  std::string workers = "1";
  std::string gpus_per_worker = "0";
  std::string image;
  std::string script;                // a file of this machine
  std::vector<std::string> command;  // or the script's arguments
  std::vector<std::string> env;
  std::vector<std::string> mounts;
  std::vector<std::string> labels;
  std::string shm;
  std::string ib;  // the resource of the device plug-in; empty: none
  std::string port;
  std::string workdir;
};

/// The group of these flags in the help.
inline constexpr const char* kJobFlags = "The job";

/// `flags` must live as long as the program's options.
void add_submit_flags(CLI::App& command, SubmitFlags& flags);

}  // namespace tj::submit
