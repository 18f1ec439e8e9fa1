#include "trainer/data/parquet/arrow/text_column.h"

#include <parquet/metadata.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "trainer/data/parquet/arrow/column_words.h"
#include "trainer/data/parquet/arrow/open_parquet.h"

namespace tj::trainer {
namespace {

constexpr std::size_t kBatchRows = 1024;

/// Leaves out pages that end before a row, which are not even unpacked then.
struct PageSkip {
  std::int64_t rows = 0;  // still to be left out; at the end within the first page that is wanted
  bool is_done = false;
  bool leaves_out(const parquet::DataPageStats& page) {
    if (is_done || page.num_values > rows) {
      is_done = true;
      return false;
    }
    rows -= std::max(0, page.num_values);
    return true;
  }
};

}  // namespace

TextColumn::TextColumn(const std::string& path, const std::string& field)
    : counted_(arrow::system_memory_pool()),
      pool_(&counted_, kParquetBufferBytesMax),
      file_(open_parquet(path, &pool_)),
      leaf_(text_leaf(*file_->metadata()->schema(), field)),
      levels_(kBatchRows),
      values_(kBatchRows) {
  const auto* const leaf = file_->metadata()->schema()->Column(leaf_);
  present_level_ = leaf->max_definition_level();
  for (int group = 0; group < file_->metadata()->num_row_groups(); ++group) add_group(group);
  if (column_.rows != file_->metadata()->num_rows()) {
    throw std::runtime_error("the footer says it has " +
                             std::to_string(file_->metadata()->num_rows()) +
                             " rows, and its row groups have " + std::to_string(column_.rows));
  }
}

void TextColumn::add_group(int group) {
  const auto of_group = file_->metadata()->RowGroup(group);
  const auto rows = of_group->num_rows();
  const auto chunk = leaf_ < of_group->num_columns() ? of_group->ColumnChunk(leaf_) : nullptr;
  if (!chunk || rows < 0 || rows > kParquetRowsMax - column_.rows || chunk->num_values() != rows) {
    throw std::runtime_error("row group " + std::to_string(group) + " has " + std::to_string(rows) +
                             " rows, and its column " +
                             std::to_string(chunk ? chunk->num_values() : 0));
  }
  group_rows_.push_back(rows);
  column_.rows += rows;
  const auto bytes = std::max<std::int64_t>(0, chunk->total_uncompressed_size());
  column_.bytes += std::min(bytes, std::numeric_limits<std::int64_t>::max() - column_.bytes);
}

std::string TextColumn::place() const {
  return group_ < 0 ? "" : "row group " + std::to_string(group_) + ": ";
}

void TextColumn::begin_group(int group, std::int64_t first_row) {
  group_ = group;
  rows_left_ = group_rows_[static_cast<std::size_t>(group)] - first_row;
  const auto skip = std::make_shared<PageSkip>(PageSkip{.rows = first_row});
  auto pages = file_->RowGroup(group)->GetColumnPageReader(leaf_);
  pages->set_data_page_filter(
      [skip](const parquet::DataPageStats& page) { return skip->leaves_out(page); });
  const auto* const leaf = file_->metadata()->schema()->Column(leaf_);
  reader_ = std::dynamic_pointer_cast<parquet::ByteArrayReader>(
      parquet::ColumnReader::Make(leaf, std::move(pages), &pool_));
  if (!reader_) throw std::runtime_error("the column is no text");
  if (first_row == 0 || !reader_->HasNext() || skip->rows == 0) return;
  if (reader_->Skip(skip->rows) != skip->rows)
    throw std::runtime_error("a page ends before its row " + std::to_string(skip->rows));
}

void TextColumn::seek(std::int64_t row) {
  for (std::size_t group = 0; group < group_rows_.size(); ++group) {
    if (row < group_rows_[group]) return begin_group(static_cast<int>(group), row);
    row -= group_rows_[group];
  }
  group_ = static_cast<int>(group_rows_.size()) - 1;
  rows_left_ = 0;
}

std::int64_t TextColumn::read(std::span<ParquetCell> cells) {
  while (rows_left_ == 0) {
    if (group_ + 1 >= static_cast<int>(group_rows_.size())) return 0;
    begin_group(group_ + 1, 0);
  }
  const auto rows = std::min(
      {static_cast<std::int64_t>(cells.size()), rows_left_, static_cast<std::int64_t>(kBatchRows)});
  std::int64_t values = 0;
  const auto read = reader_->ReadBatch(rows, levels_.data(), nullptr, values_.data(), &values);
  if (read <= 0 || read > rows || values > read) {
    throw std::runtime_error("it ends " + std::to_string(rows_left_) +
                             " rows before the footer says so");
  }
  spread(cells.first(static_cast<std::size_t>(read)), values);
  rows_left_ -= read;
  return read;
}

/// Values lie side by side; rows without one have none.
void TextColumn::spread(std::span<ParquetCell> cells, std::int64_t values) const {
  std::int64_t next = 0;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    cells[row] = {};
    if (present_level_ > 0 && levels_[row] != present_level_) continue;
    if (next == values) throw std::runtime_error("a page has fewer texts than it says");
    const auto& value = values_[static_cast<std::size_t>(next++)];
    cells[row] = {.text = value.len > 0 ? reinterpret_cast<const char*>(value.ptr) : "",
                  .bytes = static_cast<std::int64_t>(value.len)};
  }
}

}  // namespace tj::trainer
