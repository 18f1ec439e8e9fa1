// The program's side, by a plug-in that the test is itself; parquet_test.py has the real one.
#include "trainer/data/parquet/parquet_text.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

/// What the plug-in pretends that every file holds.
struct Fake {
  ParquetColumn column;
  std::string text = "text";
  std::int64_t cell_bytes = 4;
  std::int64_t next = 0;
} fake;

const ParquetPlugin kFake{
    .open = [](const char*, const char* field, ParquetColumn* column, PluginText* why) -> void* {
      *column = fake.column;
      why->write("has no column " + std::string(field));
      return std::string(field) == "text" ? &fake : nullptr;
    },
    .close = [](void*) {},
    .seek =
        [](void*, std::int64_t row, PluginText*) {
          fake.next = row;
          return true;
        },
    .read = [](void*, ParquetCell* cells, std::int64_t count, PluginText* why) -> std::int64_t {
      why->write("row group 0: a page is damaged");
      if (fake.cell_bytes < 0) return -1;
      for (std::int64_t i = 0; i < count; ++i, ++fake.next) {
        const bool has_text = fake.next % 3 != 0;
        cells[i] = {has_text ? fake.text.c_str() : nullptr, fake.cell_bytes};
      }
      return count;
    }};

std::vector<InputFile> files_of(std::int64_t bytes) {
  return {{.path = "/data/a.parquet", .name = "a", .bytes = bytes, .format = TextFormat::parquet}};
}

std::string error_of(const InputFile& file, const Slice& slice) {
  const std::string field = "text";
  const RowSlice rows{
      .file = file, .slice = slice, .field = field, .is_stopping = [] { return false; }};
  const auto done = for_each_row(kFake, rows, [](const Document&) { return true; });
  return done ? "" : describe(done.error());
}

TEST(ParquetText, files_are_planned_by_their_text_as_far_as_that_can_be) {
  const auto planned = [](ParquetColumn column) {
    fake.column = column;
    auto files = files_of(1000);
    EXPECT_TRUE(measure_parquet(kFake, "text", files));
    return files.at(0).bytes;
  };
  EXPECT_EQ(planned({.rows = 5, .bytes = 4000}), 4000);
  EXPECT_EQ(planned({.rows = 5, .bytes = 0}), 1);
  EXPECT_EQ(planned({.rows = 5, .bytes = INT64_MAX}), 256'000);
  fake.column = {};
  auto files = files_of(1000);
  EXPECT_EQ(describe(measure_parquet(kFake, "text", files).error()),
            "/data/a.parquet: has no row, as all others");
  EXPECT_EQ(describe(measure_parquet(kFake, "body", files = files_of(9)).error()),
            "/data/a.parquet: has no column body");
}

TEST(ParquetText, slices_that_cover_the_bytes_cover_the_rows) {
  for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{7}, std::int64_t{1000}}) {
    for (const std::int64_t bytes : {1, 10, 999, 5000}) {
      const InputFile file{.bytes = bytes, .rows = rows};
      EXPECT_EQ(row_at(file, 0), 0);
      EXPECT_EQ(row_at(file, bytes), rows);
      for (std::int64_t at = 1; at <= bytes; ++at)
        ASSERT_LE(row_at(file, at - 1), row_at(file, at));
    }
  }
  const InputFile large{.bytes = INT64_MAX, .rows = std::int64_t{1} << 50};
  EXPECT_EQ(row_at(large, INT64_MAX), std::int64_t{1} << 50);
}

TEST(ParquetText, rows_without_text_are_left_out_and_numbers_are_those_of_the_file) {
  fake = {.column = {.rows = 4000, .bytes = 16'000}};
  auto files = files_of(1'000'000);
  ASSERT_TRUE(measure_parquet(kFake, "text", files));
  std::vector<std::int64_t> rows;
  const std::string field = "text";
  const Slice slice{.begin = 4000, .end = 12'001};
  const auto done = for_each_row(
      kFake,
      {.file = files[0], .slice = slice, .field = field, .is_stopping = [] { return false; }},
      [&](const Document& row) {
        EXPECT_EQ(row.text, "text");
        rows.push_back(row.offset);
        return true;
      });
  ASSERT_TRUE(done);
  EXPECT_EQ(rows.front(), 1000);
  EXPECT_EQ(rows.back(), 2999);
  EXPECT_EQ(rows.size(), 1334U);
}

TEST(ParquetText, what_can_not_be_is_named) {
  fake = {.column = {.rows = 100, .bytes = 100}};
  auto files = files_of(1'000'000);
  ASSERT_TRUE(measure_parquet(kFake, "text", files));
  const Slice whole{.end = 100};
  fake.cell_bytes = kRecordBytesMax + 1;
  EXPECT_EQ(error_of(files[0], whole),
            "/data/a.parquet: row 1: has 64 MiB of text; it may have up to 64");
  fake.cell_bytes = -1;
  EXPECT_EQ(error_of(files[0], whole), "/data/a.parquet: row group 0: a page is damaged");
  fake.column.rows = 101;
  EXPECT_EQ(error_of(files[0], whole),
            "/data/a.parquet: has 101 rows and had 100 at the start; it must not change");
  fake = {.column = {.rows = 100, .bytes = 100}, .cell_bytes = kRecordBytesMax};
  fake.text.resize(kRecordBytesMax);
  EXPECT_TRUE(error_of(files[0], whole)
                  .starts_with("/data/a.parquet: row 25: so far a part of 0 KiB by the footer has "
                               "unpacked to more than 1024 MiB; "));
}

}  // namespace
}  // namespace tj::trainer
