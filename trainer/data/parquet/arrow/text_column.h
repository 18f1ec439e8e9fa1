// The text in one column of one Parquet file, page by page: what is in memory is a page and the
// column's dictionary, however large a row group is. Throws what Arrow throws.
//
// A file is not believed (open_parquet.h), and sizes are compared before they are used.
#pragma once
#include <arrow/memory_pool.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/parquet/arrow/abi.h"

namespace tj::trainer {

class TextColumn {
 public:
  TextColumn(const std::string& path, const std::string& field);
  TextColumn(const TextColumn&) = delete;
  TextColumn& operator=(const TextColumn&) = delete;  // its buffers know where the pools are

  ParquetColumn column() const { return column_; }
  void seek(std::int64_t row);
  /// How many rows it has filled in; 0 behind the last one.
  std::int64_t read(std::span<ParquetCell> cells);
  /// "row group 3: ", where reading is; for a message.
  std::string place() const;

 private:
  void add_group(int group);
  void begin_group(int group, std::int64_t first_row);
  void spread(std::span<ParquetCell> cells, std::int64_t values) const;

  arrow::ProxyMemoryPool counted_;  // the pools outlive what is allocated from them
  arrow::CappedMemoryPool pool_;
  std::unique_ptr<parquet::ParquetFileReader> file_;
  int leaf_ = 0;
  ParquetColumn column_;
  std::vector<std::int64_t> group_rows_;
  std::int16_t present_level_ = 0;  // the definition level of a row that has text; 0: all have

  int group_ = -1;                                    // -1: before the first
  std::shared_ptr<parquet::ByteArrayReader> reader_;  // of the group
  std::int64_t rows_left_ = 0;                        // in the group
  std::vector<std::int16_t> levels_;
  std::vector<parquet::ByteArray> values_;
};

}  // namespace tj::trainer
