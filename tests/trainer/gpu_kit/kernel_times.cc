// Counts what the GPU runs, kernel by kernel: CUDA loads this library into a program that has its
// path in CUDA_INJECTION64_PATH (CUPTI documentation, "CUPTI injection"). A JSON list lies in the
// file KERNEL_TIMES_OUT, written anew every half second: a program may end without a word.
#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kBufferBytes = 256 << 10;  // small: a buffer that is not full may be lost
constexpr std::size_t kBufferAlignment = 8;
constexpr std::chrono::milliseconds kWriteEvery{500};

struct Spent {
  long long calls = 0;
  double ms = 0;
};

std::mutex mutex;
std::map<std::string, Spent> spent_by_kernel;  // guarded by mutex; mangled names

void give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records_max) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *size = kBufferBytes;
  *records_max = 0;  // as many as fit
}

void take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t filled) {
  const std::lock_guard lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, filled, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto* const kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    auto& spent = spent_by_kernel[kernel->name == nullptr ? "?" : kernel->name];
    ++spent.calls;
    if (kernel->end > 0) spent.ms += static_cast<double>(kernel->end - kernel->start) * 1e-6;
  }
  std::free(buffer);
}

std::string readable(const std::string& mangled) {
  int status = 0;
  char* const text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  const std::string name = status == 0 ? text : mangled;
  std::free(text);
  return name;
}

/// As JSON's text. A name lies in a module, which a program may have unloaded since: other bytes
/// than those of names are question marks.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c >= ' ' && c <= '~' ? c : '?';
  }
  return result;
}

void write(const std::string& path) {
  const std::lock_guard lock(mutex);
  std::vector<std::pair<std::string, Spent>> all(spent_by_kernel.begin(), spent_by_kernel.end());
  std::sort(all.begin(), all.end(),
            [](const auto& one, const auto& other) { return one.second.ms > other.second.ms; });
  if (all.empty()) return;  // a process beside it that computes nothing, such as a compiler
  std::FILE* const file = std::fopen((path + ".part").c_str(), "w");
  if (file == nullptr) return;
  std::fputs("[", file);
  for (const auto& [name, spent] : all) {
    std::fprintf(file, R"(%s{"name": "%s", "calls": %lld, "ms": %.4f})",
                 name == all.front().first ? "\n" : ",\n", escaped(readable(name)).c_str(),
                 spent.calls, spent.ms);
  }
  std::fputs("\n]\n", file);
  std::fclose(file);
  std::rename((path + ".part").c_str(), path.c_str());
}

void write_for_ever(const std::string& path) {
  while (true) {
    std::this_thread::sleep_for(kWriteEvery);  // lint-ok(sleep): beside any program, for ever
    cuptiActivityFlushAll(0);
    write(path);
  }
}

/// Where a program ends by way of exit(), and not before.
void write_last() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  write(std::getenv("KERNEL_TIMES_OUT"));
}

}  // namespace

/// What CUDA calls; 1: all is well.
extern "C" int InitializeInjection() {
  const char* const path = std::getenv("KERNEL_TIMES_OUT");
  if (path == nullptr) return 0;
  const bool counts = cuptiActivityRegisterCallbacks(give_buffer, take_buffer) == CUPTI_SUCCESS &&
                      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS;
  if (!counts) {
    std::fputs("kernel_times: CUPTI counts no kernels here\n", stderr);
    return 0;
  }
  std::atexit(write_last);
  std::thread(write_for_ever, std::string(path)).detach();
  return 1;
}
