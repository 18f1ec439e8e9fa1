#include "trainer/data/parquet/arrow/open_parquet.h"

#include <arrow/io/file.h>
#include <parquet/exception.h>
#include <parquet/properties.h>

namespace tj::trainer {
namespace {

constexpr std::int64_t kStreamBytes = 64 << 10;
/// Of the lists of a footer: row groups, columns. An entry takes some hundred bytes.
constexpr std::int32_t kListEntriesMax = 200'000;
constexpr std::int32_t kStringBytesMax = 16 << 20;  // statistics have the shortest and longest text

parquet::ReaderProperties properties_of(arrow::MemoryPool* pool) {
  parquet::ReaderProperties properties(pool);
  properties.enable_buffered_stream();  // else a whole column chunk is read at once
  properties.set_buffer_size(kStreamBytes);
  properties.set_thrift_container_size_limit(kListEntriesMax);
  properties.set_thrift_string_size_limit(kStringBytesMax);
  properties.set_page_checksum_verification(true);
  return properties;
}

}  // namespace

std::unique_ptr<parquet::ParquetFileReader> open_parquet(const std::string& path,
                                                         arrow::MemoryPool* pool) {
  PARQUET_ASSIGN_OR_THROW(auto file, arrow::io::ReadableFile::Open(path, pool));
  return parquet::ParquetFileReader::Open(std::move(file), properties_of(pool));
}

}  // namespace tj::trainer
