#include "trainer/launch/engine.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "trainer/process/last_words.h"
#include "trainer/process/program_folder.h"

namespace tj::trainer {
namespace {

constexpr const char* kEngine = "trainer-engine";
/// Huge pages for the heap, which only takes effect at a program's start: weights and activations
/// are large blocks, each page of which would be a fault and a place in the TLB.
constexpr const char* kHeapTunables = "glibc.malloc.hugetlb=1";

}  // namespace

std::string engine_path() { return program_folder() / kEngine; }

int become_engine(const std::vector<std::string>& arguments) {
  const std::string path = engine_path();
  std::vector<std::string> words{path, "train"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::setenv("GLIBC_TUNABLES", kHeapTunables, /*overwrite=*/0);
  ::execv(path.c_str(), argv.data());
  const int reason = errno;
  const std::string message =
      path + ": " + std::strerror(reason) + "; trainer-engine must lie beside trainer";
  write_last_words({.reason = "EngineMissing", .message = message, .rank = {}, .step = {}});
  std::fprintf(stderr, "trainer train: %s\n", message.c_str());
  return reason == ENOENT ? 127 : 126;
}

}  // namespace tj::trainer
