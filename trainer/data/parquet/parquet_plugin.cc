#include "trainer/data/parquet/parquet_plugin.h"

#include <dlfcn.h>

#include <string>

#include "trainer/process/missing_library.h"
#include "trainer/process/program_folder.h"

namespace tj::trainer {
namespace {

Error not_loaded(const std::filesystem::path& path, std::string message) {
  return {.code = Code::not_found, .message = std::move(message), .subject = path.string()};
}

/// By dlerror()'s words: the plug-in itself, one of Arrow's libraries, or another trouble.
std::string why_not_loaded(const std::filesystem::path& plugin, const std::string& words) {
  const auto missing = missing_library(words);
  if (missing == plugin.string())
    return "is missing; it must lie beside trainer, with Arrow's libraries, to read Parquet";
  if (missing)
    return "can't be loaded: " + *missing +
           ", which it needs, is missing; Arrow's libraries (tools/deps build, or our image) must "
           "be in LD_LIBRARY_PATH or in /etc/ld.so.conf.d, to read Parquet";
  return "can't be loaded: " + words + "; it must be of the same build as trainer";
}

}  // namespace

std::filesystem::path default_parquet_plugin() {
  return program_folder() / "libtrainer_parquet.so";
}

Result<const ParquetPlugin*> load_parquet_plugin(const std::filesystem::path& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const words = ::dlerror();
    return not_loaded(path, why_not_loaded(path, words == nullptr ? "no cause given" : words));
  }
  using Factory = const ParquetPlugin* (*)();
  const auto factory = reinterpret_cast<Factory>(::dlsym(library, kParquetFactory));
  if (factory == nullptr || factory()->abi != kParquetAbi)
    return not_loaded(path, "must be of the same build as trainer");
  return factory();
}

}  // namespace tj::trainer
