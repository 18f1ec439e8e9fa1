// A disk that is slow or fails and a Gloo that is impatient, for a program that has this in
// LD_PRELOAD. SLOW_FSYNC=PATTERN=SECONDS and SLOW_READ=PATTERN=SECONDS delay each such call for
// files whose path matches; BAD_SECTOR=PATTERN lets no pread() of such a file succeed that begins
// behind the first eight bytes; SHORT_GLOO=N makes the limit that a program gives to Gloo N times
// shorter, so that a test needs no ten minutes to see that somebody gives up after ten minutes.
#include <dlfcn.h>
#include <fnmatch.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>

namespace {

template <typename Call>
Call next(const char* name) {
  return reinterpret_cast<Call>(::dlsym(RTLD_NEXT, name));
}

std::string path_of(int descriptor) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  const auto length = ::readlink(link.c_str(), path, sizeof path);
  return {path, length > 0 ? static_cast<std::size_t>(length) : 0};
}

bool matches(const std::string& pattern, int descriptor) {
  return ::fnmatch(pattern.c_str(), path_of(descriptor).c_str(), 0) == 0;
}

void delay(const char* variable, int descriptor) {
  const char* const setting = std::getenv(variable);
  if (setting == nullptr) return;
  const std::string text = setting;
  const auto equals = text.find('=');
  if (!matches(text.substr(0, equals), descriptor)) return;
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + std::chrono::seconds(std::atol(text.c_str() + equals + 1));
  for (auto left = end - steady_clock::now(); left.count() > 0; left = end - steady_clock::now())
    ::poll(nullptr, 0,
           static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  delay("SLOW_FSYNC", descriptor);
  return real(descriptor);
}

__attribute__((visibility("default"))) ssize_t read(int descriptor, void* bytes,
                                                    std::size_t count) {
  static const auto real = next<ssize_t (*)(int, void*, std::size_t)>("read");
  delay("SLOW_READ", descriptor);
  return real(descriptor, bytes, count);
}

__attribute__((visibility("default"))) ssize_t pread(int descriptor, void* bytes, std::size_t count,
                                                     off_t offset) {
  static const auto real = next<ssize_t (*)(int, void*, std::size_t, off_t)>("pread");
  const char* const pattern = std::getenv("BAD_SECTOR");
  constexpr off_t kGoodBegin = 8;  // where the header of a safetensors file begins
  if (pattern == nullptr || offset <= kGoodBegin || !matches(pattern, descriptor))
    return real(descriptor, bytes, count, offset);
  errno = EIO;
  return -1;
}

#define GLOO_OPTIONS \
  "_ZN4c10d16ProcessGroupGloo7OptionsC1ENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE"

/// The constructor of c10d::ProcessGroupGloo::Options.
__attribute__((visibility("default"))) void gloo_options(
    void* self, std::chrono::milliseconds limit) __asm__(GLOO_OPTIONS);

void gloo_options(void* self, std::chrono::milliseconds limit) {
  static const auto real = next<void (*)(void*, std::chrono::milliseconds)>(GLOO_OPTIONS);
  const char* const times = std::getenv("SHORT_GLOO");
  real(self, times == nullptr ? limit : limit / std::atol(times));
}

}  // extern "C"
