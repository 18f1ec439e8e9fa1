#include "tests/trainer/engine/disk_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

namespace tj::trainer {
namespace {

struct Counted {
  bool is_on = false;
  bool is_dead = false;
  std::int64_t count = 0;
  DiskCalls::Fate fate;
};
thread_local Counted counted;

/// False for a call that has no effect.
bool goes_through() {
  if (!counted.is_on) return true;
  if (counted.count == counted.fate.dies_at) counted.is_dead = true;
  const bool fails = counted.count++ == counted.fate.fails_at;
  if (counted.is_dead || fails) errno = EIO;
  return !counted.is_dead && !fails;
}

template <typename Call>
Call* next(const char* name) {
  return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

DiskCalls::DiskCalls(const Fate& fate) { counted = {.is_on = true, .fate = fate}; }
DiskCalls::~DiskCalls() { counted = {}; }
bool DiskCalls::is_dead() const { return counted.is_dead; }
std::int64_t DiskCalls::count() const { return counted.count; }

}  // namespace tj::trainer

using tj::trainer::goes_through;
using tj::trainer::next;

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  static auto* const real = next<int(const char*, int, ...)>("open");
  const bool changes = (flags & (O_CREAT | O_TRUNC)) != 0;
  return !changes || goes_through() ? real(path, flags, mode) : -1;
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  return goes_through() ? real(descriptor, bytes, count) : -1;
}

/// A kill loses nothing that was written, flushed or not.
int fsync(int descriptor) {
  static auto* const real = next<int(int)>("fsync");
  if (!tj::trainer::counted.is_on) return real(descriptor);
  return goes_through() ? 0 : -1;
}

int rename(const char* from, const char* to) {
  static auto* const real = next<int(const char*, const char*)>("rename");
  return goes_through() ? real(from, to) : -1;
}

int mkdir(const char* path, mode_t mode) {
  static auto* const real = next<int(const char*, mode_t)>("mkdir");
  return goes_through() ? real(path, mode) : -1;
}

int remove(const char* path) {
  static auto* const real = next<int(const char*)>("remove");
  return goes_through() ? real(path) : -1;
}

int unlinkat(int folder, const char* path, int flags) {
  static auto* const real = next<int(int, const char*, int)>("unlinkat");
  return goes_through() ? real(folder, path, flags) : -1;
}

}  // extern "C"
