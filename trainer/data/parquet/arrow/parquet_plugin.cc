// libtrainer_parquet.so: text and numbers out of Parquet by Arrow's libraries.
#include <exception>
#include <memory>
#include <string>

#include "trainer/data/parquet/arrow/abi.h"
#include "trainer/data/parquet/arrow/number_columns.h"
#include "trainer/data/parquet/arrow/text_column.h"

namespace tj::trainer {
namespace {

TextColumn& column_of(void* file) { return *static_cast<TextColumn*>(file); }

void* open(const char* path, const char* field, ParquetColumn* column, PluginText* why) try {
  auto text = std::make_unique<TextColumn>(path, field);
  *column = text->column();
  return text.release();
} catch (const std::exception& failure) {
  why->write(failure.what());
  return nullptr;
}

void close(void* file) { delete static_cast<TextColumn*>(file); }

bool seek(void* file, std::int64_t row, PluginText* why) try {
  column_of(file).seek(row);
  return true;
} catch (const std::exception& failure) {
  why->write(column_of(file).place() + failure.what());
  return false;
}

std::int64_t read(void* file, ParquetCell* cells, std::int64_t count, PluginText* why) try {
  return column_of(file).read({cells, static_cast<std::size_t>(count)});
} catch (const std::exception& failure) {
  why->write(column_of(file).place() + failure.what());
  return -1;
}

NumberColumns& numbers_of(void* file) { return *static_cast<NumberColumns*>(file); }

void* open_numbers(const char* path, std::int64_t* rows, PluginText* why) try {
  auto file = std::make_unique<NumberColumns>(path);
  *rows = file->rows();
  return file.release();
} catch (const std::exception& failure) {
  why->write(failure.what());
  return nullptr;
}

void close_numbers(void* file) { delete static_cast<NumberColumns*>(file); }

bool has_column(void* file, const char* field) { return numbers_of(file).has(field); }

bool read_numbers(void* file, const ParquetNumbers* numbers, PluginText* why) try {
  numbers_of(file).read(*numbers);
  return true;
} catch (const std::exception& failure) {
  why->write(failure.what());
  return false;
}

constexpr ParquetPlugin kPlugin{.abi = kParquetAbi,
                                .open = open,
                                .close = close,
                                .seek = seek,
                                .read = read,
                                .open_numbers = open_numbers,
                                .close_numbers = close_numbers,
                                .has_column = has_column,
                                .read_numbers = read_numbers};

}  // namespace
}  // namespace tj::trainer

const tj::trainer::ParquetPlugin* trainer_parquet_plugin() { return &tj::trainer::kPlugin; }
