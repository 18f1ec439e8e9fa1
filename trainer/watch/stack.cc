#include "trainer/watch/stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <semaphore.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>

namespace tj::trainer {
namespace {

constexpr int kFramesMax = 64;
constexpr int kOwnFrames = 2;  // the handler, and what the kernel put below it

std::array<void*, kFramesMax> frames;
volatile int frame_count = 0;
sem_t answered;

int question() { return SIGRTMIN + 5; }

void answer(int) {
  const int saved_errno = errno;
  frame_count = ::backtrace(frames.data(), kFramesMax);
  ::sem_post(&answered);
  errno = saved_errno;
}

/// "tj::trainer::Loop::train_step", without arguments and template arguments: one line is enough.
std::string readable(const char* symbol) {
  int status = 0;
  char* const demangled = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : symbol;
  std::free(demangled);
  std::string shortened;
  int depth = 0;
  for (const char letter : name) {
    if (letter == '<' || letter == '(') ++depth;
    if (depth == 0) shortened += letter;
    if (letter == '>' || letter == ')') --depth;
  }
  return shortened.empty() ? name : shortened;
}

std::string name_of(void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) != 0 && info.dli_sname != nullptr) return readable(info.dli_sname);
  std::string file = info.dli_fname == nullptr ? "?" : info.dli_fname;
  return file.substr(file.rfind('/') + 1) + "+?";
}

}  // namespace

void prepare_stacks() {
  ::backtrace(frames.data(), 1);  // loads libgcc_s, which a handler must not
  ::sem_init(&answered, /*pshared=*/0, /*value=*/0);
  struct sigaction action {};
  action.sa_handler = answer;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(question(), &action, nullptr);
}

std::vector<std::string> stack_of(pthread_t thread, std::chrono::milliseconds limit) {
  if (::pthread_kill(thread, question()) != 0) return {};
  timespec end{};
  ::clock_gettime(CLOCK_REALTIME, &end);
  const auto total = std::chrono::nanoseconds(end.tv_nsec) + limit;
  end.tv_sec += std::chrono::duration_cast<std::chrono::seconds>(total).count();
  end.tv_nsec = (total % std::chrono::seconds(1)).count();
  while (::sem_timedwait(&answered, &end) != 0) {
    if (errno != EINTR) return {};
  }
  std::vector<std::string> names;
  for (int frame = kOwnFrames; frame < frame_count; ++frame) {
    const auto name = name_of(frames[static_cast<std::size_t>(frame)]);
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

}  // namespace tj::trainer
