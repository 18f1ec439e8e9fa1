// Brings libtrainer_parquet.so in, where Arrow's libraries are.
#pragma once
#include <filesystem>

#include "contract/result.h"
#include "trainer/data/parquet/arrow/abi.h"

namespace tj::trainer {

/// libtrainer_parquet.so beside this program.
std::filesystem::path default_parquet_plugin();

/// The plug-in stays loaded for the rest of the process. Fails with Code::not_found and says what
/// is missing.
Result<const ParquetPlugin*> load_parquet_plugin(const std::filesystem::path& path);

}  // namespace tj::trainer
