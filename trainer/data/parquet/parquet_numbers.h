// Numbers in Parquet from the side of the programs: whole columns of one file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/data/parquet/arrow/abi.h"

namespace tj::trainer {

/// Of one column; more is no file of numbers that anyone would load.
inline constexpr std::int64_t kColumnBytesMax = std::int64_t{16} << 30;

class NumberFile {
 public:
  /// Fails with Code::invalid and the file. `plugin` outlives this.
  static Result<NumberFile> open(const ParquetPlugin& plugin, const std::filesystem::path& file);

  std::int64_t rows() const { return rows_; }  // by the footer
  bool has(const std::string& field) const;

  /// All rows of the column, `width` >= 1 numbers of each. Fail with Code::invalid and name the
  /// column and the row.
  Result<std::vector<float>> floats(const std::string& field, std::int64_t width) const;
  Result<std::vector<std::int64_t>> integers(const std::string& field) const;
  Result<std::vector<double>> doubles(const std::string& field) const;

 private:
  NumberFile(const ParquetPlugin& plugin, void* file, std::filesystem::path path, std::int64_t rows)
      : plugin_(&plugin), file_(file, plugin.close_numbers), path_(std::move(path)), rows_(rows) {}
  template <typename Number>
  Result<std::vector<Number>> column(ParquetNumbers numbers) const;

  const ParquetPlugin* plugin_;
  std::unique_ptr<void, void (*)(void*)> file_;
  std::filesystem::path path_;
  std::int64_t rows_;
};

}  // namespace tj::trainer
