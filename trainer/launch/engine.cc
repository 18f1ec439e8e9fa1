#include "trainer/launch/engine.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include "trainer/launch/spawn.h"
#include "trainer/launch/thread_waiting.h"
#include "trainer/process/last_words.h"
#include "trainer/process/missing_library.h"
#include "trainer/process/program_folder.h"

namespace tj::trainer {
namespace {

using std::chrono::steady_clock;

constexpr const char* kEngine = "trainer-engine";
constexpr int kNotExecutable = 126;  // as shells say it
constexpr int kNotFound = 127;
/// Huge pages for the heap, which only takes effect at a program's start: weights and activations
/// are large blocks, each page of which would be a fault and a place in the TLB.
constexpr const char* kHeapTunables = "glibc.malloc.hugetlb=1";

constexpr std::chrono::seconds kListMax{10};  // a network file system may be slow
constexpr std::size_t kListBytesMax = 1 << 20;

/// A script that stands in for the engine would do its work instead of listing libraries.
bool is_elf(const std::string& path) {
  std::array<char, 4> magic{};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) ==
         "\x7f"
         "ELF";
}

/// What the loader says when it is asked to list a program's libraries instead of running it
/// (ld.so(8), LD_TRACE_LOADED_OBJECTS); nothing where that takes too long.
std::string listed_libraries(const std::string& program) {
  const auto loader = spawn(
      {.command = {program}, .env = {{"LD_TRACE_LOADED_OBJECTS", "1"}}, .capture_output = true});
  if (!loader) return "";
  const auto end = steady_clock::now() + kListMax;
  std::string text;
  std::array<char, 4096> bytes{};
  pollfd polled{.fd = loader->out.value(), .events = POLLIN, .revents = 0};
  for (ssize_t got = 1; got > 0 && text.size() < kListBytesMax;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now());
    if (left.count() <= 0 || ::poll(&polled, 1, static_cast<int>(left.count())) <= 0) break;
    got = ::read(polled.fd, bytes.data(), bytes.size());
    if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  ::kill(loader->pid, SIGKILL);  // has ended but for one that is too slow
  ::waitpid(loader->pid, nullptr, 0);
  return text;
}

/// Of lines "<tab>libtorch.so => not found" the names.
std::vector<std::string> not_found_in(const std::string& list) {
  constexpr std::string_view kGone = " => not found";
  std::vector<std::string> names;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    const auto end = line.find(kGone);
    const auto begin = line.find_first_not_of(" \t");
    if (end == std::string::npos || begin >= end) continue;
    const auto name = line.substr(begin, end - begin);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

/// "libtorch.so, libpng16.so.16 are missing; ..."
std::string missing_text(const std::vector<std::string>& names) {
  std::string all, packages;
  bool is_torch = false;
  for (const auto& name : names) {
    all += (all.empty() ? "" : ", ") + name;
    const bool is_of_torch = name.starts_with("libtorch") || name.starts_with("libc10");
    is_torch = is_torch || is_of_torch;
    if (!is_of_torch) packages += (packages.empty() ? "" : ", ") + debian_package_of(name);
  }
  std::string text = all + (names.size() == 1 ? " is missing" : " are missing");
  if (is_torch)
    text +=
        "; the folder torch/lib of libtorch must be in LD_LIBRARY_PATH, or in /etc/ld.so.conf.d "
        "as in our image";
  if (!packages.empty()) text += "; Debian's package: " + packages;
  return text;
}

int fail_to_start(const std::string& command, const std::string& message, int code) {
  write_last_words({.reason = "EngineMissing", .message = message, .rank = {}, .step = {}});
  std::fprintf(stderr, "trainer %s: %s\n", command.c_str(), message.c_str());
  return code;
}

}  // namespace

Result<void> check_engine_libraries() {
  const std::string path = engine_path();
  if (!is_elf(path)) return {};
  const auto missing = not_found_in(listed_libraries(path));
  if (missing.empty()) return {};
  return Error{.code = Code::not_found, .message = missing_text(missing), .subject = path};
}

std::string engine_path() { return program_folder() / kEngine; }

int become_engine(const std::string& command, const std::vector<std::string>& arguments) {
  const bool were_cores_wanted = are_cores_wanted(core_demand());
  if (const auto whole = check_engine_libraries(); !whole)
    return fail_to_start(command, describe(whole.error()), kNotFound);
  const std::string path = engine_path();
  std::vector<std::string> words{path, command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::setenv("GLIBC_TUNABLES", kHeapTunables, /*overwrite=*/0);
  // A training is slower for it on a quiet machine; the other commands, with threads of FFmpeg's
  // beside, are not. Two looks, some milliseconds apart, so that no short-lived thread decides.
  const bool is_busy = were_cores_wanted && are_cores_wanted(core_demand());
  if (command != "train" || is_busy) let_threads_sleep_soon();
  ::execv(path.c_str(), argv.data());
  const int reason = errno;
  return fail_to_start(
      command, path + ": " + std::strerror(reason) + "; trainer-engine must lie beside trainer",
      reason == ENOENT ? kNotFound : kNotExecutable);
}

}  // namespace tj::trainer
