#include "trainer/process/deadline_guard.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace tj::trainer {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kOverdue = 3;
constexpr std::chrono::minutes kLong{1};

void overdue() { ::_exit(kOverdue); }

/// No process has addresses for a stack of this size: a thread is then refused, as when memory has
/// run out.
void refuse_threads() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{1} << 47);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

[[noreturn]] void wait_for_ever() {
  while (true) ::pause();
}

TEST(DeadlineGuard, ends_what_does_not_return) {
  EXPECT_EXIT(
      {
        const DeadlineGuard guard(steady_clock::now() + milliseconds(10), overdue);
        wait_for_ever();
      },
      testing::ExitedWithCode(kOverdue), "");
}

TEST(DeadlineGuard, ends_it_without_a_thread_too) {
  EXPECT_EXIT(
      {
        refuse_threads();
        const DeadlineGuard guard(steady_clock::now() + milliseconds(10), overdue);
        wait_for_ever();
      },
      testing::KilledBySignal(SIGALRM), "");
}

TEST(DeadlineGuard, leaves_alone_what_returns) {
  EXPECT_EXIT(
      {
        { const DeadlineGuard guard(steady_clock::now() + kLong, overdue); }
        refuse_threads();
        {
          const DeadlineGuard outer(steady_clock::now() + kLong, overdue);
          { const DeadlineGuard inner(steady_clock::now() + 2 * kLong, overdue); }
          const auto left = ::alarm(0);  // the inner one is gone, the outer one is not
          ::alarm(left);
          if (left == 0 || std::chrono::seconds(left) > kLong) ::_exit(1);
        }
        ::_exit(::alarm(0) == 0 ? 0 : 2);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tj::trainer
