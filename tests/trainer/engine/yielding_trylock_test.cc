// A thread that asks for a taken mutex again and again lets its holder run: Gloo's device thread
// does so.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

namespace tj::trainer {
namespace {

std::string file_of(const void* address) {
  Dl_info found{};
  return ::dladdr(address, &found) != 0 ? found.dli_fname : "";
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// The threads that this one starts get its CPU only.
void stay_on_one_cpu() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
}

/// In the order in which the loader looks for what libtorch asks for.
TEST(YieldingTrylock, is_what_libraries_find_first) {
  const void* const found = ::dlsym(RTLD_DEFAULT, "pthread_mutex_trylock");
  EXPECT_EQ(file_of(found), file_of(reinterpret_cast<void*>(&file_of)));
}

TEST(YieldingTrylock, takes_a_free_mutex_and_no_other) {
  std::mutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(YieldingTrylock, gives_the_cpu_to_the_thread_that_has_the_mutex) {
  constexpr double kHeldCpuSeconds = 0.2;
  constexpr std::int64_t kTriesMax = 20'000;  // of a million that fit into this time
  std::int64_t tries = 0;
  std::thread([&] {
    stay_on_one_cpu();
    std::mutex mutex;
    std::atomic<bool> is_held = false;
    std::thread holder([&] {
      const std::lock_guard lock(mutex);
      is_held = true;
      while (cpu_seconds() < kHeldCpuSeconds) {}
    });
    while (!is_held) ::sched_yield();
    while (!mutex.try_lock()) ++tries;
    mutex.unlock();
    holder.join();
  }).join();
  EXPECT_LT(tries, kTriesMax);
}

}  // namespace
}  // namespace tj::trainer
