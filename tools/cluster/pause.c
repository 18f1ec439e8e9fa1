/* Process 1 of every pod's sandbox in the test cluster: waits until it is told to end. */
#include <signal.h>
#include <unistd.h>

static void end(int signal_number) {
  (void)signal_number;
  _exit(0);
}

int main(void) {
  signal(SIGTERM, end);
  signal(SIGINT, end);
  for (;;) pause();
}
