#include "trainer/checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

const std::vector<float> kNumbers{1, 2, 3, 4, 5, 6, 7};

fs::path write_example(const TemporaryFolder& folder) {
  const auto bytes = std::as_bytes(std::span(kNumbers));
  const TensorBytes tensors[] = {{"matrix", {2, 3}, bytes.first(24)},
                                 {"scalar", {}, bytes.subspan(24)}};
  const fs::path path = folder.path() / "x.safetensors";
  EXPECT_TRUE(write_safetensors(path, tensors, {{"format", "pt"}}));
  return path;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Safetensors, writes_length_header_and_data_as_the_format_says) {
  const TemporaryFolder folder;
  const std::string text = text_of(write_example(folder));
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("matrix":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                             R"("scalar":{"dtype":"F32","shape":[],"data_offsets":[24,28]}})";
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(text.substr(8, header.size()), header);
  EXPECT_EQ(text.substr(8 + header.size(), length - header.size()),
            std::string(length - header.size(), ' '));
  ASSERT_EQ(text.size(), 8 + length + 28);
  EXPECT_EQ(std::memcmp(text.data() + 8 + length, kNumbers.data(), 28), 0);
}

TEST(Safetensors, the_head_of_a_tensor_whose_bytes_come_later_is_the_same) {
  const auto bytes = std::as_bytes(std::span(kNumbers)).first(24);
  const TensorBytes tensors[] = {{"matrix", {2, 3}, bytes}};
  EXPECT_EQ(safetensors_head(TensorHead{.name = "matrix", .shape = {2, 3}}, {{"format", "pt"}}),
            safetensors_head(tensors, {{"format", "pt"}}));
}

TEST(Safetensors, says_where_a_tensor_lies_in_the_file) {
  const TemporaryFolder folder;
  const auto path = write_example(folder);
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << describe(file.error());
  const auto* const scalar = file->find("scalar");
  ASSERT_NE(scalar, nullptr);
  float number = 0;
  std::memcpy(&number, text_of(path).data() + scalar->begin, sizeof number);
  EXPECT_EQ(number, kNumbers[6]);
}

TEST(Safetensors, reads_back_what_it_wrote) {
  const TemporaryFolder folder;
  const auto file = SafetensorsFile::open(write_example(folder));
  ASSERT_TRUE(file) << describe(file.error());
  EXPECT_EQ(file->tensors().size(), 2U);
  const auto* matrix = file->find("matrix");
  ASSERT_NE(matrix, nullptr);
  EXPECT_EQ(matrix->shape, (std::vector<std::int64_t>{2, 3}));
  std::vector<float> numbers(4);
  ASSERT_TRUE(file->read_floats(*matrix, numbers, 2));
  EXPECT_EQ(numbers, (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(file->find("none"), nullptr);
}

TEST(Safetensors, a_file_without_tensors_reads_back) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_safetensors(folder.path() / "none", {}, {}));
  const auto file = SafetensorsFile::open(folder.path() / "none");
  ASSERT_TRUE(file) << describe(file.error());
  EXPECT_TRUE(file->tensors().empty());
}

TEST(Safetensors, a_file_cut_anywhere_is_refused) {
  const TemporaryFolder folder;
  const fs::path path = write_example(folder);
  for (auto size = fs::file_size(path); size-- > 0;) {
    fs::resize_file(path, size);
    EXPECT_FALSE(SafetensorsFile::open(path)) << size;
  }
}

TEST(Safetensors, a_file_that_is_cut_while_it_is_read_is_an_error) {
  const TemporaryFolder folder;
  const auto path = write_example(folder);
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << describe(file.error());
  fs::resize_file(path, fs::file_size(path) - 8);
  const auto* matrix = file->find("matrix");
  std::vector<float> numbers(6);
  const auto read = file->read_floats(*matrix, numbers);
  ASSERT_FALSE(read);
  EXPECT_EQ(describe(read.error()), path.string() + ": can't be read at byte " +
                                        std::to_string(fs::file_size(path)) +
                                        ": the file has been cut since it was opened");
}

TEST(Safetensors, a_pipe_is_refused_and_not_waited_for) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.safetensors";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto file = SafetensorsFile::open(path);
  ASSERT_FALSE(file);
  EXPECT_EQ(describe(file.error()),
            "x.safetensors: is not a usable safetensors file: is a pipe or a device; it must be a "
            "file, which is read at any place");
}

TEST(Safetensors, a_file_that_ends_early_is_called_cut_short) {
  const TemporaryFolder folder;
  const auto path = write_example(folder);
  fs::resize_file(path, fs::file_size(path) - 3);
  const auto file = SafetensorsFile::open(path);
  ASSERT_FALSE(file);
  EXPECT_EQ(describe(file.error()),
            "x.safetensors: is not a usable safetensors file: tensor scalar ends 3 bytes behind "
            "the end of the file (cut short?)");
}

TEST(Safetensors, lying_headers_are_refused) {
  const TemporaryFolder folder;
  const char* const headers[] = {
      R"([])",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      R"({"a":{"dtype":"F32","shape":[1]}})",
      R"({"a":{"dtype":"F32","shape":[1e300],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4.5]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-1e300,4]}})",
      R"({})",
  };
  for (const std::string header : headers) {
    const std::uint64_t length = header.size();
    std::string text(reinterpret_cast<const char*>(&length), 8);
    text += header + std::string(4, '\0');
    EXPECT_FALSE(SafetensorsFile::open(folder.write("lie", text))) << header;
  }
}

TEST(Safetensors, holes_and_overlaps_are_refused) {
  const TemporaryFolder folder;
  const char* const headers[] = {
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
  };
  for (const std::string header : headers) {
    const std::uint64_t length = header.size();
    std::string text(reinterpret_cast<const char*>(&length), 8);
    text += header + std::string(8, '\0');
    EXPECT_FALSE(SafetensorsFile::open(folder.write("lie", text))) << header;
  }
}

// Values from IEEE 754-2008, table of binary16: 1, -2, largest, smallest normal and subnormal, inf.
TEST(Safetensors, half_precision_becomes_float32_exactly) {
  const std::vector<std::uint16_t> halves{0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8001, 0x7c00};
  std::vector<float> floats(halves.size());
  ASSERT_TRUE(read_floats({"h", {7}, std::as_bytes(std::span(halves)), "F16"}, floats));
  EXPECT_EQ(floats, (std::vector<float>{1, -2, 65504, 0x1p-14F, 0x1p-24F, -0x1p-24F,
                                        std::numeric_limits<float>::infinity()}));
  const std::vector<std::uint16_t> brains{0x3f80, 0xc000, 0x0001};
  floats.resize(brains.size());
  ASSERT_TRUE(read_floats({"b", {3}, std::as_bytes(std::span(brains)), "BF16"}, floats));
  EXPECT_EQ(floats, (std::vector<float>{1, -2, 0x1p-133F}));
}

TEST(Safetensors, half_precision_is_read_from_a_file_in_pieces) {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> brains(700'000);  // more than a piece
  for (std::size_t i = 0; i < brains.size(); ++i)
    brains[i] = static_cast<std::uint16_t>(i % 0x7f80);
  const TensorBytes tensors[] = {{"b", {700'000}, std::as_bytes(std::span(brains)), "BF16"}};
  ASSERT_TRUE(write_safetensors(folder.path() / "b", tensors, {}));
  const auto file = SafetensorsFile::open(folder.path() / "b");
  ASSERT_TRUE(file) << describe(file.error());
  std::vector<float> all(brains.size()), read(600'001);
  ASSERT_TRUE(read_floats(tensors[0], all));
  ASSERT_TRUE(file->read_floats(*file->find("b"), read, 77'777));
  EXPECT_TRUE(std::ranges::equal(read, std::span(all).subspan(77'777, read.size())));
}

TEST(Safetensors, other_types_are_refused_by_name) {
  const std::vector<std::int64_t> numbers{1};
  std::vector<float> floats(1);
  EXPECT_EQ(
      describe(read_floats({"n", {1}, std::as_bytes(std::span(numbers)), "I64"}, floats).error()),
      "tensor n: is of type I64; F32, F16 and BF16 can be read");
}

}  // namespace
}  // namespace tj::trainer
