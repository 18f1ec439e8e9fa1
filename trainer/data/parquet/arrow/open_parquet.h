// Opens a Parquet file that is not believed: its lists, strings and pages have limits, and the
// checksums of pages are checked where it has some. Throws what Arrow throws.
#pragma once
#include <arrow/memory_pool.h>
#include <parquet/file_reader.h>

#include <memory>
#include <string>

namespace tj::trainer {

/// What one file may take: a page as it lies there, the same unpacked, and the dictionary.
inline constexpr std::int64_t kParquetBufferBytesMax = std::int64_t{1} << 30;
inline constexpr std::int64_t kParquetRowsMax = std::int64_t{1} << 50;  // sums of rows are exact

/// `pool` outlives the reader.
std::unique_ptr<parquet::ParquetFileReader> open_parquet(const std::string& path,
                                                         arrow::MemoryPool* pool);

}  // namespace tj::trainer
