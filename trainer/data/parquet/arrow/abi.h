// What the programs and libtrainer_parquet.so know of each other. The programs run where Arrow's
// libraries are not installed; what needs them lies behind this table. No exception crosses it.
#pragma once
#include <cstdint>

#include "trainer/values/plugin_text.h"

namespace tj::trainer {

/// Changes with every change of this file.
inline constexpr int kParquetAbi = 2;
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

/// What numbers of a column are handed over as, whatever the file has them as.
enum class ParquetNumber : int { int64, float32, float64 };

/// A column of numbers, or of lists of `width` numbers each, and who takes them: `count` rows after
/// another, `width` numbers each. He may say false: enough.
struct ParquetNumbers {
  const char* field = nullptr;
  ParquetNumber number = ParquetNumber::float32;
  std::int64_t width = 1;
  bool (*take)(void* context, const void* numbers, std::int64_t count) = nullptr;
  void* context = nullptr;
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

  /// Opens a file for its columns of numbers; `rows` by its footer. Null with the cause in `why`.
  void* (*open_numbers)(const char* path, std::int64_t* rows, PluginText* why) = nullptr;
  void (*close_numbers)(void* file) = nullptr;
  /// Is there such a column, of whatever kind?
  bool (*has_column)(void* file, const char* field) = nullptr;
  /// All rows of one column, in order. False with the cause in `why`, which names the row.
  bool (*read_numbers)(void* file, const ParquetNumbers* numbers, PluginText* why) = nullptr;
};

}  // namespace tj::trainer

/// The one symbol of the plug-in. Never null.
extern "C" __attribute__((visibility("default"))) const tj::trainer::ParquetPlugin*
trainer_parquet_plugin();
