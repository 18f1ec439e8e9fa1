#include "trainer/process/plugin.h"

#include <dlfcn.h>

#include "trainer/process/missing_library.h"

namespace tj::trainer {
namespace {

Error not_loaded(const PluginRequest& request, std::string message) {
  return {.code = Code::not_found, .message = std::move(message), .subject = request.path.string()};
}

/// By dlerror()'s words.
std::string why_not_loaded(const PluginRequest& request, const std::string& words) {
  const auto missing = missing_library(words);
  if (missing) return request.without(*missing, *missing == request.path.string());
  return "can't be loaded: " + words + "; it must be of the same build as " + request.program;
}

}  // namespace

Result<void*> open_plugin(const PluginRequest& request) {
  void* const library = ::dlopen(request.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const words = ::dlerror();
    return not_loaded(request,
                      why_not_loaded(request, words == nullptr ? "no cause given" : words));
  }
  void* const factory = ::dlsym(library, request.factory);
  if (factory == nullptr) return other_build(request);
  return factory;
}

Error other_build(const PluginRequest& request) {
  return not_loaded(request, std::string("must be of the same build as ") + request.program);
}

}  // namespace tj::trainer
