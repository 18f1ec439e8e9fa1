// What the programs and libtrainer_parquet.so know of each other. The programs run where Arrow's
// libraries are not installed; what needs them lies behind this table. No exception crosses it.
#pragma once
#include <cstdint>

#include "trainer/values/plugin_text.h"

namespace tj::trainer {

/// Changes with every change of this file.
inline constexpr int kParquetAbi = 1;
inline constexpr const char* kParquetFactory = "trainer_parquet_plugin";

/// What the footer of a file says of its column of text.
struct ParquetColumn {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;  // unpacked; nothing has been read that would prove it
};

/// What one row has in the column.
struct ParquetCell {
  const char* text = nullptr;  // null: the row has none. Ends without a zero
  std::int64_t bytes = 0;
};

struct ParquetPlugin {
  int abi = kParquetAbi;  // stays the first in every version
  /// Opens the column `field` of a file, before its first row. Null with the cause in `why`.
  void* (*open)(const char* path, const char* field, ParquetColumn* column,
                PluginText* why) = nullptr;
  void (*close)(void* file) = nullptr;
  /// The next row will be number `row` of the file. False with the cause in `why`.
  bool (*seek)(void* file, std::int64_t row, PluginText* why) = nullptr;
  /// The next rows, at most `count`, which stay valid until the next call. How many; 0 behind the
  /// last row; -1 with the cause in `why`. A file is read by one thread at a time.
  std::int64_t (*read)(void* file, ParquetCell* cells, std::int64_t count,
                       PluginText* why) = nullptr;
};

}  // namespace tj::trainer

/// The one symbol of the plug-in. Never null.
extern "C" __attribute__((visibility("default"))) const tj::trainer::ParquetPlugin*
trainer_parquet_plugin();
