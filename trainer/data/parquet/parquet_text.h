// Text in Parquet from the side of the programs: a document is a row of one column.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/data/documents.h"
#include "trainer/data/parquet/arrow/abi.h"
#include "trainer/data/prepare_plan.h"

namespace tj::trainer {

/// Of one slice; its tokens are kept in memory. More is a file that unpacks beyond all measure.
inline constexpr std::int64_t kSliceTextBytesMax = std::int64_t{1} << 30;

/// Each of `files` gets the rows of its column `field`, and the bytes of that column in place of
/// its own: it is by them that Parquet is cut into parts. Files without a row are left out. By
/// their footers alone; fails with Code::invalid and names the file and the columns it has.
Result<void> measure_parquet(const ParquetPlugin& plugin, const std::string& field,
                             std::vector<InputFile>& files);

/// The first row whose place in the file, if all rows were of one size, is not before byte `at` of
/// its text: so slices that cover the bytes cover the rows.
std::int64_t row_at(const InputFile& file, std::int64_t at);

/// The rows of `slice`, which is of `file`.
struct RowSlice {
  const InputFile& file;
  const Slice& slice;
  const std::string& field;
  std::function<bool()> is_stopping;
};

/// Calls `take` for each row that has text, in order; a row's number is the offset of its document.
/// Ends early when it returns false or is_stopping() is true. Fails with Code::invalid, naming the
/// row.
Result<void> for_each_row(const ParquetPlugin& plugin, const RowSlice& rows,
                          const std::function<bool(const Document&)>& take);

}  // namespace tj::trainer
