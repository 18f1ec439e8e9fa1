#include "trainer/watch/stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <thread>

#include "trainer/process/process_state.h"

namespace tj::trainer {

/// Has external linkage, so that its name is found.
__attribute__((noinline)) int stands_here_until(const std::future<void>& end,
                                                std::promise<void>& began) {
  began.set_value();
  end.wait();
  return 1;
}

namespace {
using std::chrono::seconds;

TEST(Stack, of_another_thread_names_its_functions) {
  prepare_stacks();
  std::promise<void> began, end;
  int result = 0;
  std::thread thread([&, ended = end.get_future()] { result = stands_here_until(ended, began); });
  began.get_future().wait();
  const auto frames = stack_of(thread.native_handle(), seconds(10));
  end.set_value();
  thread.join();
  EXPECT_THAT(frames, testing::Contains("tj::trainer::stands_here_until"));
  EXPECT_EQ(result, 1);
}

TEST(ProcessState, tells_a_stopped_process) {
  EXPECT_EQ(process_state(::getpid()).has_value(), true);
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_EQ(process_state(child), 'T');
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(process_state(child), std::nullopt);
}

/// The file of a process can be opened and then not be read, as the process has gone in between.
TEST(ProcessState, is_none_for_a_process_that_goes_while_it_is_asked) {
  for (int trial = 0; trial < 300; ++trial) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    std::thread reaper([child] { ::waitpid(child, nullptr, 0); });
    while (process_state(child)) {}
    reaper.join();
  }
}

}  // namespace
}  // namespace tj::trainer
