#include "trainer/process/stop_request.h"

#include <csignal>

namespace tj::trainer {
namespace {
volatile std::sig_atomic_t caught = 0;
void remember(int signal) { caught = signal; }
}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = remember;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

int stop_signal() { return caught; }

}  // namespace tj::trainer
