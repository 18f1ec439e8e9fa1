// What we write, libtorch's own reader of archives reads.
#include "trainer/checkpoint/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "tests/temporary_folder.h"
#include "trainer/checkpoint/torch_archive.h"

namespace tj::trainer {
namespace {

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

TEST(TorchFile, has_the_bits_that_were_written) {
  const TemporaryFolder folder;
  const std::vector<float> first{1.5F, -0.0F, 3e-42F, std::numeric_limits<float>::infinity()};
  const std::vector<float> rest{5, 6};
  const std::vector<std::uint16_t> halves{0x3c00, 0xc000, 0x0001};  // 1, -2, 2^-24
  const std::vector<TensorParts> tensors{
      {.name = "decoder.1.weight", .shape = {2, 3, 1}, .parts = {bytes_of(first), bytes_of(rest)}},
      {.name = "halves", .shape = {3}, .parts = {bytes_of(halves)}, .dtype = "F16"},
      {.name = "none", .shape = {0, 4}, .parts = {}},
      {.name = "scalar", .shape = {}, .parts = {bytes_of(rest).first(4)}}};
  const auto path = folder.path() / "x.pth";
  const auto written = write_torch_archive(path, tensors);
  ASSERT_TRUE(written) << describe(written.error());

  const auto file = TorchFile::open(path);
  ASSERT_TRUE(file) << describe(file.error());
  ASSERT_EQ(file->tensors().size(), tensors.size());
  const auto floats_of = [&](const std::string& name, std::size_t count) {
    std::vector<float> floats(count);
    const auto read = file->read(file->tensors().at(name), floats, 0);
    EXPECT_TRUE(read) << describe(read.error());
    return floats;
  };
  const auto weight = floats_of("decoder.1.weight", 6);
  EXPECT_EQ(file->tensors().at("decoder.1.weight").shape, (std::vector<std::int64_t>{2, 3, 1}));
  EXPECT_EQ(std::memcmp(weight.data(), first.data(), 16), 0);
  EXPECT_EQ(std::memcmp(weight.data() + 4, rest.data(), 8), 0);
  EXPECT_EQ(file->tensors().at("halves").dtype, "F16");
  EXPECT_EQ(floats_of("halves", 3), (std::vector<float>{1, -2, 0x1p-24F}));
  EXPECT_EQ(floats_of("scalar", 1), (std::vector<float>{5}));
  EXPECT_EQ(file->tensors().at("none").shape, (std::vector<std::int64_t>{0, 4}));
}

}  // namespace
}  // namespace tj::trainer
