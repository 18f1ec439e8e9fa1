#include "trainer/comm/nccl_loader.h"

#include <dlfcn.h>

#include <system_error>

#include "trainer/process/missing_library.h"
#include "trainer/process/program_folder.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

/// dlerror() of the call before.
std::string why() {
  const char* const text = ::dlerror();
  return text == nullptr ? "no cause given" : text;
}

/// Of NVIDIA's libraries each has a folder of its own in PyTorch's wheel.
std::string without_cuda(const NcclPlace& place, const std::string& cause) {
  const auto missing = missing_library(cause);
  if (missing && *missing != place.cuda_library) {
    return place.cuda_library + " can't be loaded: " + *missing +
           ", which it needs, is missing; the folders nvidia/*/lib of PyTorch " + place.libtorch +
           " for CUDA must be in LD_LIBRARY_PATH, beside torch/lib";
  }
  return place.cuda_library + " can't be loaded (" + cause + "); the folder torch/lib of PyTorch " +
         place.libtorch + " for CUDA must be in LD_LIBRARY_PATH";
}

Error not_found(std::string message) {
  return {.code = Code::not_found, .message = std::move(message)};
}

Error invalid(std::string message) {
  return {.code = Code::invalid, .message = std::move(message)};
}

}  // namespace

fs::path default_nccl_plugin() { return program_folder() / "libtrainer_nccl.so"; }

Result<const NcclPlugin*> load_nccl_plugin(const NcclPlace& place) {
  std::error_code unreadable;
  if (!fs::exists(place.plugin, unreadable))
    return not_found("libtrainer_nccl.so is missing: " + place.plugin.string());
  // First and for all: the plug-in takes its symbols from here.
  if (::dlopen(place.cuda_library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
    return not_found(without_cuda(place, why()));
  void* const library = ::dlopen(place.plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return invalid(place.plugin.string() + " can't be loaded: " + why());
  using Factory = const NcclPlugin* (*)();
  const auto factory = reinterpret_cast<Factory>(::dlsym(library, kNcclFactory));
  if (factory == nullptr)
    return invalid(place.plugin.string() + " is no plug-in of this program: it has no " +
                   kNcclFactory);
  const NcclPlugin* const plugin = factory();
  if (plugin->abi != kNcclAbi) {
    return invalid(place.plugin.string() + " has interface " + std::to_string(plugin->abi) +
                   ", this program has " + std::to_string(kNcclAbi) +
                   "; both must come from one build");
  }
  if (plugin->libtorch != place.libtorch) {
    return invalid(place.plugin.string() + " was compiled with libtorch " + plugin->libtorch +
                   ", this program with " + place.libtorch + "; both must come from one build");
  }
  return plugin;
}

}  // namespace tj::trainer
