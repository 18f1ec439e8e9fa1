// pthread_mutex_trylock() of this process: where it fails, the CPU goes to another thread.
//
// Gloo's device thread asks epoll again at once when it can't have a pair's mutex
// (transport/tcp/pair.cc, handleEvents: torch 2.11). Where ranks have few cores it has often woken
// up in the place of the thread that holds the mutex, and asks a million times in a second until
// the kernel takes its CPU away (adr/0030). Gloo is inside libtorch, and finds this function first
// because the program has it; tj_trainer_torch makes the linker take it.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <cerrno>

extern "C" __attribute__((visibility("default"))) int pthread_mutex_trylock(
    pthread_mutex_t* mutex) noexcept {
  using TryLock = int (*)(pthread_mutex_t*);
  static const auto c_library =
      reinterpret_cast<TryLock>(::dlsym(RTLD_NEXT, "pthread_mutex_trylock"));
  const int error = c_library(mutex);
  if (error == EBUSY) ::sched_yield();
  return error;
}
