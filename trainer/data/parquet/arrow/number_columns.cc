#include "trainer/data/parquet/arrow/number_columns.h"

#include <parquet/column_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <vector>

#include "trainer/data/parquet/arrow/column_words.h"
#include "trainer/data/parquet/arrow/open_parquet.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kBatchValues = 8192;

/// A whole number that a double holds exactly stays one.
template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_same_v<To, std::int64_t> && std::is_floating_point_v<From>) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    const auto number = static_cast<double>(value);
    if (!(std::abs(number) <= kExact) || std::trunc(number) != number)
      throw std::runtime_error("has " + std::to_string(number) + ", which is no whole number");
    return static_cast<std::int64_t>(number);
  } else {
    return static_cast<To>(value);
  }
}

/// Puts rows together out of values and their levels, and hands out those that are whole.
template <typename To>
class RowBuilder {
 public:
  RowBuilder(const ParquetNumbers& numbers, const parquet::ColumnDescriptor& leaf)
      : numbers_(numbers),
        present_level_(leaf.max_definition_level()),
        is_list_(leaf.max_repetition_level() > 0) {}

  /// False: the taker has enough.
  template <typename From>
  bool add(std::span<const From> values, std::span<const std::int16_t> definitions,
           std::span<const std::int16_t> repetitions) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < definitions.size(); ++i) {
      if (!is_list_ || repetitions[i] == 0) begin_row();
      if (row_ < 0) throw wrong("begins in the middle");
      if (definitions[i] != present_level_) throw wrong("has no number, or too few");
      if (next == values.size()) throw wrong("has fewer numbers than its page says");
      if (++in_row_ > numbers_.width) throw wrong("has more than " + width_text());
      row_values_.push_back(converted<To>(values[next++]));
    }
    return hand_out(is_list_ ? 1 : 0);
  }
  /// How many rows there were.
  std::int64_t end() {
    end_row();
    hand_out(0);
    return row_ + 1;
  }
  std::string place() const {
    return "row " + std::to_string(std::max<std::int64_t>(0, row_)) + ": ";
  }

 private:
  void begin_row() {
    end_row();
    ++row_;
    in_row_ = 0;
  }
  void end_row() const {
    if (row_ >= 0 && in_row_ != numbers_.width)
      throw wrong("has " + std::to_string(in_row_) + " and not " + width_text());
  }
  std::string width_text() const {
    return std::to_string(numbers_.width) + (numbers_.width == 1 ? " number" : " numbers");
  }
  static std::runtime_error wrong(const std::string& what) { return std::runtime_error(what); }

  /// All but the last `open` rows, which may go on.
  bool hand_out(std::int64_t open) {
    const auto begun =
        (static_cast<std::int64_t>(row_values_.size()) + numbers_.width - 1) / numbers_.width;
    const auto rows = begun - open;
    if (rows <= 0) return true;
    const bool goes_on = numbers_.take(numbers_.context, row_values_.data(), rows);
    row_values_.erase(row_values_.begin(), row_values_.begin() + rows * numbers_.width);
    return goes_on;
  }

  const ParquetNumbers& numbers_;
  const std::int16_t present_level_;
  const bool is_list_;
  std::int64_t row_ = -1;       // that which values are added to
  std::int64_t in_row_ = 0;     // of its values
  std::vector<To> row_values_;  // of rows that were not handed out
};

/// The buffers of a batch. bool is no type of a span of std::vector's.
template <typename From>
struct Batch {
  std::unique_ptr<From[]> values = std::make_unique<From[]>(kBatchValues);
  std::vector<std::int16_t> definitions = std::vector<std::int16_t>(kBatchValues);
  std::vector<std::int16_t> repetitions = std::vector<std::int16_t>(kBatchValues);
};

/// One column of one row group. False: enough.
template <typename Type, typename To>
bool read_group(parquet::ColumnReader& column, RowBuilder<To>& rows) {
  using From = typename Type::c_type;
  auto& reader = static_cast<parquet::TypedColumnReader<Type>&>(column);
  const auto* const leaf = column.descr();
  Batch<From> batch;
  while (reader.HasNext()) {
    std::int64_t values = 0;
    const auto levels = reader.ReadBatch(kBatchValues, batch.definitions.data(),
                                         batch.repetitions.data(), batch.values.get(), &values);
    if (levels <= 0 || levels > kBatchValues || values < 0 || values > levels)
      throw std::runtime_error("its pages end before the footer says so");
    const auto count = static_cast<std::size_t>(levels);
    // Arrow writes no levels of a column that needs none.
    if (leaf->max_definition_level() == 0)
      std::fill_n(batch.definitions.begin(), count, std::int16_t{0});
    if (leaf->max_repetition_level() == 0)
      std::fill_n(batch.repetitions.begin(), count, std::int16_t{0});
    const bool goes_on = rows.add(
        std::span<const From>(batch.values.get(), static_cast<std::size_t>(values)),
        std::span(batch.definitions).first(count), std::span(batch.repetitions).first(count));
    if (!goes_on) return false;
  }
  return true;
}

template <typename To>
bool read_group_of_any(parquet::ColumnReader& column, RowBuilder<To>& rows) {
  switch (column.type()) {
    case parquet::Type::BOOLEAN: return read_group<parquet::BooleanType>(column, rows);
    case parquet::Type::INT32: return read_group<parquet::Int32Type>(column, rows);
    case parquet::Type::INT64: return read_group<parquet::Int64Type>(column, rows);
    case parquet::Type::FLOAT: return read_group<parquet::FloatType>(column, rows);
    case parquet::Type::DOUBLE: return read_group<parquet::DoubleType>(column, rows);
    default: throw std::runtime_error("has no numbers");
  }
}

template <typename To>
void read_column(parquet::ParquetFileReader& file, int leaf, const ParquetNumbers& numbers) {
  RowBuilder<To> rows(numbers, *file.metadata()->schema()->Column(leaf));
  try {
    for (int group = 0; group < file.metadata()->num_row_groups(); ++group) {
      const auto column = file.RowGroup(group)->Column(leaf);
      if (!read_group_of_any(*column, rows)) return;
    }
    const auto count = rows.end();
    if (count != file.metadata()->num_rows())
      throw std::runtime_error("the footer says it has " +
                               std::to_string(file.metadata()->num_rows()) +
                               " rows, and there are " + std::to_string(count));
  } catch (const std::exception& failure) {
    throw std::runtime_error("column \"" + std::string(numbers.field) + "\": " + rows.place() +
                             failure.what());
  }
}

}  // namespace

NumberColumns::NumberColumns(const std::string& path)
    : counted_(arrow::system_memory_pool()),
      pool_(&counted_, kParquetBufferBytesMax),
      file_(open_parquet(path, &pool_)),
      rows_(file_->metadata()->num_rows()) {
  if (rows_ < 0 || rows_ > kParquetRowsMax)
    throw std::runtime_error("the footer says it has " + std::to_string(rows_) + " rows");
}

bool NumberColumns::has(const std::string& field) const {
  return has_column(*file_->metadata()->schema(), field);
}

void NumberColumns::read(const ParquetNumbers& numbers) {
  const int leaf = number_leaf(*file_->metadata()->schema(), numbers.field);
  switch (numbers.number) {
    case ParquetNumber::int64: return read_column<std::int64_t>(*file_, leaf, numbers);
    case ParquetNumber::float32: return read_column<float>(*file_, leaf, numbers);
    case ParquetNumber::float64: return read_column<double>(*file_, leaf, numbers);
  }
}

}  // namespace tj::trainer
