// The documents of one slice of a file of text or Parquet, as prepare_plan.h has cut it.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/data/documents.h"
#include "trainer/data/parquet/arrow/abi.h"
#include "trainer/data/prepare_plan.h"
#include "trainer/values/failure.h"

namespace tj::trainer {

struct SliceCall {
  const InputFile& file;
  const Slice& slice;
  /// By the place in the file; where it is there, plain text is cut into pieces (plain_pieces.h).
  std::function<bool(std::int64_t)> is_held_out = {};
  std::function<bool()> is_stopping;  // asked while rows are skipped
};

class SliceReader {
 public:
  /// `field` is that of JSON lines, or the column of Parquet.
  explicit SliceReader(std::string field) : field_(std::move(field)) {}

  /// Before files are planned: Parquet among them is measured by the text in it. `plugin` empty:
  /// libtrainer_parquet.so beside this program.
  std::optional<Failure> measure(std::vector<InputFile>& files,
                                 const std::filesystem::path& plugin = {});

  /// Calls `take` with each document until it returns false; from any thread. Holds the text of the
  /// slice meanwhile. Fails when the file has another size than it had, as for_each_document(), and
  /// as for_each_row().
  Result<void> read(const SliceCall& call, const std::function<bool(const Document&)>& take) const;

 private:
  Result<void> read_text(const SliceCall& call,
                         const std::function<bool(const Document&)>& take) const;

  std::string field_;
  const ParquetPlugin* parquet_ = nullptr;  // where the input is Parquet
};

}  // namespace tj::trainer
