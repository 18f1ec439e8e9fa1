#include "cli/cluster/captured_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace tj {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{
    20};  // between looks at a program that has closed its output

Error wrong(Code code, const std::string& message) { return Error{code, message, "", {}}; }

/// The environment of this process; a variable of `over` takes the place of ours.
std::vector<std::string> merged_env(const std::vector<std::string>& over) {
  std::vector<std::string> all = over;
  const auto is_over = [&over](const char* variable) {
    return std::any_of(over.begin(), over.end(), [variable](const std::string& other) {
      return std::strncmp(variable, other.c_str(), other.find('=') + 1) == 0;
    });
  };
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_over(*variable)) all.emplace_back(*variable);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

class Child {
 public:
  ~Child() {
    if (output_ >= 0) ::close(output_);
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  Result<void> start(const ProgramRun& run) {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
      return wrong(Code::internal, std::string("no pipe: ") + std::strerror(errno));
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
    if (!run.keeps_stdin)
      ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    std::vector<std::string> argv = {run.program};
    argv.insert(argv.end(), run.args.begin(), run.args.end());
    std::vector<std::string> env = merged_env(run.env);
    const int failed = ::posix_spawnp(&pid_, run.program.c_str(), &actions, nullptr,
                                      pointers(argv).data(), pointers(env).data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(pipe[1]);
    output_ = pipe[0];
    if (failed == 0) return {};
    pid_ = -1;
    if (failed == ENOENT) return wrong(Code::not_found, "not found");
    return wrong(Code::invalid, std::string("can't be started: ") + std::strerror(failed));
  }

  Result<std::string> read_all(std::size_t bytes_max, Clock::time_point ends) {
    std::string text;
    std::array<char, 16 * 1024> part{};
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(ends - Clock::now());
      pollfd ready{output_, POLLIN, 0};
      const int count = left.count() > 0 ? ::poll(&ready, 1, static_cast<int>(left.count())) : 0;
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return wrong(Code::timeout, "did not end");
      const ssize_t size = ::read(output_, part.data(), part.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) return text;
      text.append(part.data(), static_cast<std::size_t>(size));
      if (text.size() > bytes_max)
        return wrong(Code::invalid, "prints more than " + std::to_string(bytes_max) + " bytes");
    }
  }

  Result<void> wait(Clock::time_point ends) {
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (Clock::now() >= ends) return wrong(Code::timeout, "did not end");
      ::poll(nullptr, 0, static_cast<int>(kLook.count()));
    }
    pid_ = -1;
    if (WIFSIGNALED(status)) {
      return wrong(Code::invalid, "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
                                      ::strsignal(WTERMSIG(status)) + ")");
    }
    if (WEXITSTATUS(status) == 0) return {};
    return wrong(Code::invalid, "failed with exit code " + std::to_string(WEXITSTATUS(status)));
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

}  // namespace

Result<std::string> run_captured(const ProgramRun& run) {
  const auto ends = Clock::now() + run.deadline;
  Child child;
  const Result<void> started = child.start(run);
  if (!started) return started.error();
  Result<std::string> text = child.read_all(run.output_bytes_max, ends);
  const Result<void> ended = text ? child.wait(ends) : Result<void>(text.error());
  if (ended) return text;
  Error error = ended.error();
  if (error.code == Code::timeout)
    error.message += " within " + std::to_string(run.deadline.count() / 1000) + " s";
  return error;
}

}  // namespace tj
