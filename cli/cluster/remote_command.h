// A command in a container, with its input, its output and its exit code (the subresource `exec` of
// a pod).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/cluster_link.h"

namespace tj {

struct RemoteCommand {
  std::string ns;
  std::string pod;
  std::string container;
  std::vector<std::string> command;
  bool with_input = false;
  bool is_terminal = false;  // one of the container's own; there is no standard error then
};

/// The path and query that asks for it. Pure.
std::string exec_target(const RemoteCommand& command);

/// What the last message says: the command's exit code, or why it did not run. Pure.
Result<int> exit_code_of(const std::string& status);

struct RemoteIo {
  /// What the command prints; false: nobody wants more, and it is left alone.
  std::function<bool(std::string_view bytes)> on_output;
  std::function<bool(std::string_view bytes)> on_error;
  int input = -1;  // a descriptor, read where with_input is set
};

/// Runs the loop until the command has ended. While it runs, the size of our terminal is its own
/// where is_terminal is set; SIGINT, SIGTERM and SIGHUP end it with 128 and their number.
Result<int> run_remotely(const std::shared_ptr<ClusterLink>& link, const RemoteCommand& command,
                         const RemoteIo& io);

}  // namespace tj
