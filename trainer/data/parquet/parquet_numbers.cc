#include "trainer/data/parquet/parquet_numbers.h"

#include <new>

namespace tj::trainer {
namespace {

Error wrong(const std::filesystem::path& file, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = file.string()};
}

/// What is put together while a column is read; no exception may leave it.
template <typename Number>
struct Taken {
  std::vector<Number> numbers;
  std::int64_t width = 1;
  bool is_full = false;

  static bool take(void* context, const void* more, std::int64_t rows) {
    auto& taken = *static_cast<Taken*>(context);
    const auto count = static_cast<std::size_t>(rows * taken.width);
    const auto bytes = (taken.numbers.size() + count) * sizeof(Number);
    const auto* const first = static_cast<const Number*>(more);
    try {
      taken.is_full = bytes > static_cast<std::size_t>(kColumnBytesMax);
      if (!taken.is_full) taken.numbers.insert(taken.numbers.end(), first, first + count);
    } catch (const std::bad_alloc&) {
      taken.is_full = true;
    }
    return !taken.is_full;
  }
};

}  // namespace

Result<NumberFile> NumberFile::open(const ParquetPlugin& plugin,
                                    const std::filesystem::path& file) {
  PluginText why;
  std::int64_t rows = 0;
  void* const opened = plugin.open_numbers(file.c_str(), &rows, &why);
  if (opened == nullptr) return wrong(file, why.bytes);
  return NumberFile(plugin, opened, file, rows);
}

bool NumberFile::has(const std::string& field) const {
  return plugin_->has_column(file_.get(), field.c_str());
}

template <typename Number>
Result<std::vector<Number>> NumberFile::column(ParquetNumbers numbers) const {
  TJ_CHECK(numbers.width >= 1, "a row has a number");
  Taken<Number> taken{.numbers = {}, .width = numbers.width};
  numbers.take = Taken<Number>::take;
  numbers.context = &taken;
  PluginText why;
  const bool is_read = plugin_->read_numbers(file_.get(), &numbers, &why);
  if (taken.is_full)
    return wrong(path_, "column \"" + std::string(numbers.field) +
                            "\" has more numbers than fit into memory, or than " +
                            std::to_string(kColumnBytesMax >> 30) + " GiB");
  if (!is_read) return wrong(path_, why.bytes);
  return std::move(taken.numbers);
}

Result<std::vector<float>> NumberFile::floats(const std::string& field, std::int64_t width) const {
  return column<float>({.field = field.c_str(), .number = ParquetNumber::float32, .width = width});
}
Result<std::vector<std::int64_t>> NumberFile::integers(const std::string& field) const {
  return column<std::int64_t>({.field = field.c_str(), .number = ParquetNumber::int64});
}
Result<std::vector<double>> NumberFile::doubles(const std::string& field) const {
  return column<double>({.field = field.c_str(), .number = ParquetNumber::float64});
}

}  // namespace tj::trainer
