#include "trainer/comm/nccl_plugin/runtime_compiler.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

namespace tj::trainer {
namespace {

// Torch's own door to NVRTC and the driver: both are among its dependencies, wherever they lie.
constexpr const char* kLibrary = "libcaffe2_nvrtc.so";

/// What of NVRTC and the driver is needed (NVRTC 13.0 documentation, section 3: its result is 0 for
/// success, its program a pointer; cuda.h).
struct Functions {
  using Program = void*;
  int (*create)(Program*, const char* text, const char* name, int headers, const char* const* texts,
                const char* const* names) = nullptr;
  int (*compile)(Program, int options, const char* const* values) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*code_size)(Program, std::size_t*) = nullptr;
  int (*code)(Program, char*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  decltype(&::cuModuleLoadData) load = nullptr;
  decltype(&::cuModuleGetFunction) function = nullptr;
  decltype(&::cuLaunchKernel) launch = nullptr;
  decltype(&::cuGetErrorString) error_string = nullptr;
  decltype(&::cuCtxGetCurrent) current_context = nullptr;
};

template <typename Function>
void find(void* library, const char* name, Function& function) {
  void* const symbol = ::dlsym(library, name);
  if (symbol == nullptr) throw std::runtime_error(std::string(kLibrary) + " has no " + name);
  std::memcpy(&function, &symbol, sizeof symbol);
}

Functions found_functions() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  Functions found;
  find(library, "nvrtcCreateProgram", found.create);
  find(library, "nvrtcCompileProgram", found.compile);
  find(library, "nvrtcGetProgramLogSize", found.log_size);
  find(library, "nvrtcGetProgramLog", found.log);
  find(library, "nvrtcGetCUBINSize", found.code_size);
  find(library, "nvrtcGetCUBIN", found.code);
  find(library, "nvrtcDestroyProgram", found.destroy);
  find(library, "cuModuleLoadData", found.load);
  find(library, "cuModuleGetFunction", found.function);
  find(library, "cuLaunchKernel", found.launch);
  find(library, "cuGetErrorString", found.error_string);
  find(library, "cuCtxGetCurrent", found.current_context);
  return found;
}

/// Throws where they are missing, at each call.
const Functions& functions() {
  static const Functions kFound = found_functions();
  return kFound;
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* words = nullptr;
  functions().error_string(result, &words);
  throw std::runtime_error(std::string(what) + ": " + (words == nullptr ? "no words" : words));
}

/// Of the compiler's log, the line that says what is wrong.
std::string first_error(const std::string& log) {
  const auto at = log.find("error");
  const auto line = at == std::string::npos ? 0 : log.rfind('\n', at) + 1;
  return log.substr(line, log.find('\n', line) - line);
}

/// One of NVRTC's answers, which has a size first; empty where there is none.
template <typename Size, typename Take>
std::string answer_of(Functions::Program program, Size size_of, Take take) {
  std::size_t size = 0;
  if (size_of(program, &size) != 0) return "";
  std::string answer(size, '\0');
  return take(program, answer.data()) == 0 ? answer : "";
}

/// Machine code for the device in use.
std::string code_of(const char* text) {
  const auto& nvrtc = functions();
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, c10::cuda::current_device()));
  const std::string architecture = "--gpu-architecture=sm_" + std::to_string(properties.major) +
                                   std::to_string(properties.minor);
  const char* const options[] = {architecture.c_str(), "--std=c++17"};
  struct Program {
    Functions::Program handle = nullptr;
    ~Program() { functions().destroy(&handle); }
  } program;
  if (nvrtc.create(&program.handle, text, "kernels.cu", 0, nullptr, nullptr) != 0)
    throw std::runtime_error("NVRTC takes no text");
  if (nvrtc.compile(program.handle, std::size(options), options) != 0)
    throw std::runtime_error(first_error(answer_of(program.handle, nvrtc.log_size, nvrtc.log)));
  auto code = answer_of(program.handle, nvrtc.code_size, nvrtc.code);
  if (code.empty()) throw std::runtime_error("NVRTC made no code for " + architecture);
  return code;
}

/// A thread that has not called the runtime yet has no context.
void have_context() {
  CUcontext context = nullptr;
  check(functions().current_context(&context), "the context");
  if (context == nullptr) C10_CUDA_CHECK(cudaFree(nullptr));
}

/// Stays loaded for the rest of the process.
CUmodule module_of(const char* text) {
  static std::mutex mutex;  // guards the one below
  static std::map<const char*, CUmodule> modules;
  const std::scoped_lock lock(mutex);
  if (const auto known = modules.find(text); known != modules.end()) return known->second;
  const auto code = code_of(text);
  CUmodule loaded = nullptr;
  check(functions().load(&loaded, code.data()), "loading the code");
  return modules[text] = loaded;
}

}  // namespace

const void* compile_kernel(const char* text, const char* name, PluginText* why) try {
  have_context();
  CUfunction kernel = nullptr;
  check(functions().function(&kernel, module_of(text), name), name);
  return kernel;
} catch (const std::exception& failure) {
  why->write(failure.what());
  return nullptr;
}

bool launch_kernel(const KernelLaunch* launch, PluginText* why) try {
  const auto kernel = static_cast<CUfunction>(const_cast<void*>(launch->kernel));
  const auto extent = [](long long count) { return static_cast<unsigned>(count); };
  have_context();
  check(functions().launch(kernel, extent(launch->blocks), extent(launch->blocks_y), 1,
                           extent(launch->threads), 1, 1, /*sharedMemBytes=*/0,
                           c10::cuda::getCurrentCUDAStream().stream(), launch->arguments, nullptr),
        "a kernel's launch");
  return true;
} catch (const std::exception& failure) {
  why->write(failure.what());
  return false;
}

}  // namespace tj::trainer
