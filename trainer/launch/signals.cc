#include "trainer/launch/signals.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "contract/result.h"

namespace tj::trainer {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

SignalQueue::SignalQueue() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // inherited as ignored, it would take the exit codes away
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGCHLD, SIGTERM, SIGUSR1, SIGUSR2}) sigaddset(&watched, signal);
  for (const int signal : {SIGINT, SIGHUP, SIGQUIT}) {
    if (!is_ignored(signal)) sigaddset(&watched, signal);
  }
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  fd_ = UniqueFd(::signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC));
  TJ_CHECK(fd_.open(), std::string("signalfd: ") + std::strerror(errno));
}

std::vector<int> SignalQueue::read_all() {
  std::vector<int> signals;
  signalfd_siginfo info{};
  while (::read(fd_.value(), &info, sizeof(info)) == sizeof(info)) {
    signals.push_back(static_cast<int>(info.ssi_signo));
  }
  return signals;
}

bool asks_to_stop(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

std::string describe_signal(int signal) {
  const char* name = sigabbrev_np(signal);
  return "signal " + std::to_string(signal) + (name ? std::string(" (SIG") + name + ")" : "");
}

}  // namespace tj::trainer
