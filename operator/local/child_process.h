// One local process with all that it starts: its own process group, its output read line by line,
// its end reported. Between us and it stands a keeper (a fork of this program, as containerd's shim
// is): it adopts what the process leaves behind, ends it when the process ends, and ends everything
// when this program dies, by whatever signal.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "contract/launch_env.h"
#include "contract/result.h"

namespace tj {

struct ChildCommand {
  std::string program;  // the file to execute
  std::vector<std::string> argv;
  std::vector<EnvVar> env;
  std::string working_folder;
};

struct ChildEnd {
  int exit_code = 0;         // 128+n when signal n ended it
  int start_errno = 0;       // not 0: it never ran, execve or chdir said so
  bool keeper_lost = false;  // the keeper itself was killed
};

struct ChildHandlers {
  std::function<void(std::string_view bytes)> on_output;  // stdout and stderr as written, in order
  std::function<void(std::string_view line)> on_line;     // the same without the line's end
  std::function<void(const ChildEnd&)> on_end;            // last call; the group is empty
};

inline constexpr std::size_t kLineBytesMax = 64 * 1024;  // a longer line is told in pieces

class ChildProcess {
 public:
  /// Callbacks come on the loop, never from inside this call. Call on the thread that runs the loop
  /// and lives longest: the kernel ties the keeper to it. Fails when this process may not fork or
  /// open pipes.
  static Result<std::unique_ptr<ChildProcess>> start(boost::asio::io_context& loop,
                                                     const ChildCommand& command,
                                                     ChildHandlers handlers);
  /// Kills what still runs; no callback comes any more.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// SIGTERM to the process itself, as kubelet does it: what it started is its own business.
  void terminate();
  /// SIGKILL to everything.
  void kill();

 private:
  struct State;
  explicit ChildProcess(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace tj
