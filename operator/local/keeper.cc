#include "operator/local/keeper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace tj {
namespace {

constexpr int kOutputFd = 3;
constexpr int kNotesFd = 4;

void tell(KeeperNote::Kind kind, int value) {
  const KeeperNote note{kind, value};
  // A parent that is gone needs no note.
  [[maybe_unused]] const auto written = write(kNotesFd, &note, sizeof note);
}

/// Leaves the two pipes as descriptors 3 and 4 and closes all else: other workers' pipes must not
/// be held open here.
void arrange_descriptors(const KeeperOrder& order) {
  const int output = fcntl(order.output_fd, F_DUPFD_CLOEXEC, 10);
  const int notes = fcntl(order.notes_fd, F_DUPFD_CLOEXEC, 10);
  dup3(output, kOutputFd, O_CLOEXEC);
  dup3(notes, kNotesFd, O_CLOEXEC);
  const int nothing = open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2; ++fd) dup2(nothing, fd);
  close_range(kNotesFd + 1, ~0U, 0);
}

[[noreturn]] void become_process(const KeeperOrder& order, int keeper_pid) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper_pid) _exit(128 + SIGKILL);  // the keeper died before the line above
  dup2(kOutputFd, STDOUT_FILENO);
  dup2(kOutputFd, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (chdir(order.working_folder) == 0) execve(order.program, order.argv, order.env);
  tell(KeeperNote::start_failed, errno);
  _exit(127);
}

/// SIGKILL to each direct child. Children of the killed are adopted by this process and met in the
/// next round.
/// False when the kernel does not tell them (CONFIG_PROC_CHILDREN).
bool kill_children() {
  char path[64];
  const int self = getpid();
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/children", self, self);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[8192];
  int pid = 0;
  for (ssize_t count = 0; (count = ::read(fd, text, sizeof text)) > 0;) {
    for (ssize_t i = 0; i < count; ++i) {
      if (text[i] >= '0' && text[i] <= '9') {
        pid = pid * 10 + (text[i] - '0');
      } else {
        if (pid > 0) ::kill(pid, SIGKILL);
        pid = 0;
      }
    }
  }
  close(fd);
  return true;
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/// Ends the group and every descendant, reaping them all. Returns the exit code of `main_pid` if it
/// ends here, else `known`.
int end_everything(int main_pid, int known) {
  int code = known;
  ::kill(-main_pid, SIGKILL);
  while (true) {
    const bool knows_children = kill_children();
    int wait_status = 0;
    const int pid = waitpid(knows_children ? -1 : -main_pid, &wait_status, 0);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return code;  // ECHILD: nobody is left
    if (pid == main_pid && known < 0) code = exit_code_of(wait_status);
  }
}

/// Reaps what has ended. Returns the exit code of `main_pid` if it was among them, else -1.
int reap(int main_pid) {
  int code = -1;
  int wait_status = 0;
  for (int pid = 0; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
    if (pid == main_pid) code = exit_code_of(wait_status);
  }
  return code;
}

}  // namespace

void run_keeper(const KeeperOrder& order) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  setpgid(0, 0);  // the terminal's Ctrl-C is for tj alone
  prctl(PR_SET_NAME, "tj-keeper");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != order.parent_pid) _exit(0);
  arrange_descriptors(order);
  const int keeper_pid = getpid();
  const int main_pid = fork();
  if (main_pid == 0) become_process(order, keeper_pid);
  if (main_pid < 0) {
    tell(KeeperNote::start_failed, errno);
    _exit(0);
  }
  setpgid(main_pid, main_pid);  // done on both sides: whoever comes first
  close(kOutputFd);
  tell(KeeperNote::started, main_pid);
  int code = -1;
  while (code < 0) {
    siginfo_t info;
    const int number = sigwaitinfo(&all, &info);
    if (number == SIGTERM) break;
    if (number == SIGUSR1) ::kill(main_pid, SIGTERM);
    if (number == SIGCHLD) code = reap(main_pid);
  }
  tell(KeeperNote::ended, end_everything(main_pid, code));
  _exit(0);
}

}  // namespace tj
