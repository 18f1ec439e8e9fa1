#include "trainer/data/parquet/parquet_text.h"

#include <algorithm>
#include <array>
#include <memory>

namespace tj::trainer {
namespace {

constexpr std::size_t kBatchRows = 1024;
/// The footer's word for the size of the text counts up to so many times the file. More than that
/// is no text; and a file that lies must not make a million parts.
constexpr std::int64_t kUnpackedMax = 256;

Error wrong(const InputFile& file, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = file.path.string()};
}

/// A file that the plug-in has opened.
class OpenColumn {
 public:
  static Result<OpenColumn> open(const ParquetPlugin& plugin, const InputFile& file,
                                 const std::string& field) {
    PluginText why;
    ParquetColumn column;
    void* const opened = plugin.open(file.path.c_str(), field.c_str(), &column, &why);
    if (opened == nullptr) return wrong(file, why.bytes);
    return OpenColumn(plugin, opened, column);
  }

  const ParquetColumn& column() const { return column_; }
  Result<void> seek(const InputFile& file, std::int64_t row) {
    PluginText why;
    if (plugin_->seek(file_.get(), row, &why)) return {};
    return wrong(file, why.bytes);
  }
  Result<std::int64_t> read(const InputFile& file, std::span<ParquetCell> cells) {
    PluginText why;
    const auto count =
        plugin_->read(file_.get(), cells.data(), static_cast<std::int64_t>(cells.size()), &why);
    if (count < 0) return wrong(file, why.bytes);
    return count;
  }

 private:
  OpenColumn(const ParquetPlugin& plugin, void* file, ParquetColumn column)
      : plugin_(&plugin), file_(file, plugin.close), column_(column) {}
  const ParquetPlugin* plugin_;
  std::unique_ptr<void, void (*)(void*)> file_;
  ParquetColumn column_;
};

/// Of the text in `column`, for the plan of parts. Never 0 where there is a row.
std::int64_t planned_bytes(const ParquetColumn& column, std::int64_t file_bytes) {
  const auto most = file_bytes > INT64_MAX / kUnpackedMax ? INT64_MAX : file_bytes * kUnpackedMax;
  return std::clamp<std::int64_t>(column.bytes, 1, most);
}

std::string row_words(std::int64_t row) { return "row " + std::to_string(row) + ": "; }

/// Hands out the rows of a batch that have text, and looks at their sizes.
class RowTaker {
 public:
  RowTaker(const RowSlice& rows, const std::function<bool(const Document&)>& take)
      : rows_(rows), take_(take) {}

  /// False: enough.
  Result<bool> take(std::span<const ParquetCell> cells, std::int64_t first_row) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto& cell = cells[i];
      const auto row = first_row + static_cast<std::int64_t>(i);
      if (cell.text == nullptr || cell.bytes == 0) continue;
      if (cell.bytes > kRecordBytesMax) {
        return wrong(rows_.file, row_words(row) + "has " + std::to_string(cell.bytes >> 20) +
                                     " MiB of text; it may have up to " +
                                     std::to_string(kRecordBytesMax >> 20));
      }
      text_bytes_ += cell.bytes;
      if (text_bytes_ > kSliceTextBytesMax) {
        return wrong(rows_.file,
                     row_words(row) + "so far a part of " +
                         std::to_string((rows_.slice.end - rows_.slice.begin) >> 10) +
                         " KiB by the footer has unpacked to more than " +
                         std::to_string(kSliceTextBytesMax >> 20) +
                         " MiB; a smaller --part-mib, or row groups of fewer rows, take less");
      }
      const std::string_view text(cell.text, static_cast<std::size_t>(cell.bytes));
      if (!take_({.text = text, .offset = row})) return false;
    }
    return true;
  }

 private:
  const RowSlice& rows_;
  const std::function<bool(const Document&)>& take_;
  std::int64_t text_bytes_ = 0;
};

}  // namespace

Result<void> measure_parquet(const ParquetPlugin& plugin, const std::string& field,
                             std::vector<InputFile>& files) {
  for (auto& file : files) {
    const auto opened = OpenColumn::open(plugin, file, field);
    if (!opened) return opened.error();
    file.rows = opened->column().rows;
    file.bytes = planned_bytes(opened->column(), file.bytes);
  }
  const auto first_path = files.empty() ? std::string() : files.front().path.string();
  std::erase_if(files, [](const InputFile& file) { return file.rows == 0; });
  if (!files.empty()) return {};
  return Error{
      .code = Code::invalid, .message = "has no row, as all others", .subject = first_path};
}

std::int64_t row_at(const InputFile& file, std::int64_t at) {
  __extension__ using Wide = __int128;  // rows times bytes
  const Wide bytes = file.bytes;
  return static_cast<std::int64_t>((static_cast<Wide>(at) * file.rows + bytes - 1) / bytes);
}

Result<void> for_each_row(const ParquetPlugin& plugin, const RowSlice& rows,
                          const std::function<bool(const Document&)>& take) {
  auto opened = OpenColumn::open(plugin, rows.file, rows.field);
  if (!opened) return opened.error();
  if (opened->column().rows != rows.file.rows) {
    return wrong(rows.file, "has " + std::to_string(opened->column().rows) + " rows and had " +
                                std::to_string(rows.file.rows) +
                                " at the start; it must not change");
  }
  const auto end = row_at(rows.file, rows.slice.end);
  auto row = row_at(rows.file, rows.slice.begin);
  if (row == end) return {};
  if (const auto sought = opened->seek(rows.file, row); !sought) return sought;
  RowTaker taker(rows, take);
  std::array<ParquetCell, kBatchRows> cells;
  while (row < end && !rows.is_stopping()) {
    const auto wanted = std::min<std::int64_t>(kBatchRows, end - row);
    const auto read =
        opened->read(rows.file, std::span(cells).first(static_cast<std::size_t>(wanted)));
    if (!read) return read.error();
    if (*read == 0) return wrong(rows.file, row_words(row) + "is missing");
    const auto more = taker.take(std::span(cells).first(static_cast<std::size_t>(*read)), row);
    if (!more) return more.error();
    if (!*more) return {};
    row += *read;
  }
  return {};
}

}  // namespace tj::trainer
