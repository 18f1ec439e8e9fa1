#include "trainer/launch/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

extern char** environ;

namespace tj::trainer {
namespace {

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Error no_resources(const char* call) {
  return Error{.code = Code::unavailable,
               .message = std::string(call) + " failed: " + std::strerror(errno),
               .subject = {},
               .retry_after = {}};
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return no_resources("pipe2");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Our environment with `changes` over it, as "NAME=value".
std::vector<std::string> merged_environment(const std::vector<EnvVar>& changes) {
  std::vector<std::string> merged;
  const auto replaced = [&](std::string_view entry) {
    for (const EnvVar& change : changes) {
      if (entry.substr(0, entry.find('=')) == change.name) return true;
    }
    return false;
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!replaced(*entry)) merged.emplace_back(*entry);
  }
  for (const EnvVar& change : changes) merged.push_back(change.name + "=" + change.value);
  return merged;
}

/// The null-terminated array that exec wants; it points into `texts`.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Handlers and masks as a fresh process has them. What was ignored when we started (nohup) stays
/// ignored; SIGPIPE is ignored by ourselves alone.
void reset_signals() {
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// A worker that reads a terminal from a background process group would be stopped without a word.
void detach_terminal_input() {
  if (::isatty(STDIN_FILENO) == 0) return;
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nothing.open()) ::dup2(nothing.value(), STDIN_FILENO);
}

struct ChildSide {
  std::vector<char*> argv;
  std::vector<char*> envp;
  int out = -1;  // -1: inherited
  int err = -1;
  int failure = -1;  // gets errno when exec fails, and is closed by exec otherwise
};

[[noreturn]] void become_command(const ChildSide& side, pid_t launcher) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(1);  // it died before the line above
  detach_terminal_input();
  if (side.out >= 0) ::dup2(side.out, STDOUT_FILENO);
  if (side.err >= 0) ::dup2(side.err, STDERR_FILENO);
  reset_signals();
  ::execvpe(side.argv[0], side.argv.data(), side.envp.data());
  const int reason = errno;
  const auto ignored = ::write(side.failure, &reason, sizeof(reason));
  static_cast<void>(ignored);
  ::_exit(127);
}

/// errno of a failed exec; absent once the command runs.
std::optional<int> wait_for_exec(const UniqueFd& failure) {
  int reason = 0;
  ssize_t read_bytes = 0;
  do {
    read_bytes = ::read(failure.value(), &reason, sizeof(reason));
  } while (read_bytes < 0 && errno == EINTR);
  if (read_bytes != sizeof(reason)) return std::nullopt;
  return reason;
}

Error exec_error(const std::string& command, int reason) {
  const bool is_path = command.find('/') != std::string::npos;
  std::string message;
  if (reason == ENOENT && !is_path) {
    message =
        "command not found; it must be in PATH (" + process_env("PATH").value_or("unset") + ")";
  } else if (reason == ENOENT && ::access(command.c_str(), F_OK) == 0) {
    message = "its interpreter is missing; the first line of the file must name one that exists";
  } else if (reason == ENOENT || reason == ENOTDIR) {
    message = "no such file; it must be the path of a program";
  } else if (reason == EACCES) {
    message = "permission denied; it must be an executable file";
  } else {
    message = std::string("can't be executed: ") + std::strerror(reason);
  }
  return Error{.code = reason == ENOENT || reason == ENOTDIR ? Code::not_found : Code::forbidden,
               .message = std::move(message),
               .subject = command,
               .retry_after = {}};
}

}  // namespace

Result<Spawned> spawn(const SpawnRequest& request) {
  auto failure = make_pipe();
  if (!failure) return failure.error();
  Pipe out;
  Pipe err;
  for (Pipe* pipe : {&out, &err}) {
    if (!request.capture_output) continue;
    auto made = make_pipe();
    if (!made) return made.error();
    *pipe = *std::move(made);
  }
  std::vector<std::string> arguments = request.command;
  std::vector<std::string> environment = merged_environment(request.env);
  const ChildSide side{.argv = pointers_to(arguments),
                       .envp = pointers_to(environment),
                       .out = out.write_end.value(),
                       .err = err.write_end.value(),
                       .failure = failure->write_end.value()};
  const pid_t launcher = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return no_resources("fork");
  if (pid == 0) become_command(side, launcher);
  failure->write_end.reset();
  if (const auto reason = wait_for_exec(failure->read_end)) {
    ::waitpid(pid, nullptr, 0);
    return exec_error(request.command[0], *reason);
  }
  return Spawned{pid, std::move(out.read_end), std::move(err.read_end)};
}

}  // namespace tj::trainer
