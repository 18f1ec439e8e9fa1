// Columns of numbers of one Parquet file, row by row: numbers, or lists of so many numbers each, as
// LeRobot keeps states and actions. What is in memory is a batch. Throws what Arrow throws.
#pragma once
#include <arrow/memory_pool.h>
#include <parquet/file_reader.h>

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/data/parquet/arrow/abi.h"

namespace tj::trainer {

class NumberColumns {
 public:
  explicit NumberColumns(const std::string& path);
  NumberColumns(const NumberColumns&) = delete;
  NumberColumns& operator=(const NumberColumns&) = delete;  // its buffers know where the pools are

  std::int64_t rows() const { return rows_; }
  bool has(const std::string& field) const;
  /// Hands out every row of `numbers.field`. A row without a number, or with another count of them,
  /// is an error that names it.
  void read(const ParquetNumbers& numbers);

 private:
  arrow::ProxyMemoryPool counted_;  // the pools outlive what is allocated from them
  arrow::CappedMemoryPool pool_;
  std::unique_ptr<parquet::ParquetFileReader> file_;
  std::int64_t rows_ = 0;
};

}  // namespace tj::trainer
