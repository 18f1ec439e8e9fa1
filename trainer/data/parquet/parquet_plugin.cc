#include "trainer/data/parquet/parquet_plugin.h"

#include <string>

#include "trainer/process/plugin.h"
#include "trainer/process/program_folder.h"

namespace tj::trainer {
namespace {

std::string without(const std::string& missing, bool is_itself) {
  if (is_itself)
    return "is missing; it must lie beside trainer, with Arrow's libraries, to read Parquet";
  return "can't be loaded: " + missing +
         ", which it needs, is missing; Arrow's libraries (tools/deps build, or our image) must "
         "be in LD_LIBRARY_PATH or in /etc/ld.so.conf.d, to read Parquet";
}

}  // namespace

std::filesystem::path default_parquet_plugin() {
  return program_folder() / "libtrainer_parquet.so";
}

Result<const ParquetPlugin*> load_parquet_plugin(const std::filesystem::path& path) {
  return load_plugin<ParquetPlugin>(
      {.path = path, .factory = kParquetFactory, .program = "trainer", .without = without},
      kParquetAbi);
}

}  // namespace tj::trainer
