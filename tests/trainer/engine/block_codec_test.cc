// What codecs of blocks lose, what they say of it, and that nothing which is not finite hides in
// them.
#include "trainer/comm/reduce/block_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "trainer/comm/reduce/coded_rows.h"
#include "trainer/values/counter_random.h"

namespace tj::trainer {
namespace {

constexpr Codec kCodecs[] = {Codec::fp32, Codec::bf16, Codec::fp16, Codec::int8};
constexpr std::size_t kSizes[] = {0, 1, 2, 15, 1023, 1024, 1025, 5000};

/// From -largest to largest, of many magnitudes.
std::vector<float> values_of(std::size_t count, std::uint64_t seed, float largest = 1) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = mixed(seed * 1'000'003 + i);
    const float sign = (bits & 1) == 0 ? 1.0F : -1.0F;
    const float share = static_cast<float>(bits >> 40) / static_cast<float>(1 << 24);
    values[i] = sign * largest * share * share * share;
  }
  return values;
}

std::vector<std::byte> encoded(const BlockCodec& codec, std::span<const float> values,
                               std::span<float> errors = {}) {
  std::vector<std::byte> bytes(codec.bytes_of(values.size()));
  encode_row(codec, values, 1, errors, bytes.data());
  return bytes;
}

std::vector<float> decoded(const BlockCodec& codec, const std::vector<std::byte>& bytes,
                           std::size_t count) {
  std::vector<float> values(count, 99);
  const std::byte* const rows[] = {bytes.data()};
  decode_sum(codec, rows, values);
  return values;
}

float largest_of(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

/// The most that may be lost of `value` in a block with such a largest one.
float loss_max(Codec codec, float value, float largest) {
  switch (codec) {
    case Codec::bf16: return std::ldexp(std::abs(value), -8);
    // Beside the largest of a block the smallest have fewer bits, as those of binary16 do.
    case Codec::fp16: return std::max(std::ldexp(std::abs(value), -11), std::ldexp(largest, -38));
    case Codec::int8: return largest / 127 * 0.5001F;
    default: return 0;
  }
}

TEST(BlockCodec, loses_no_more_than_it_may) {
  for (const Codec codec : kCodecs) {
    for (const std::size_t size : kSizes) {
      for (const float largest : {1.0F, 1e-9F, 3e30F}) {
        const auto values = values_of(size, size + 1, largest);
        const auto back = decoded(block_codec(codec), encoded(block_codec(codec), values), size);
        for (std::size_t begin = 0; begin < size; begin += kBlockElements) {
          const auto end = std::min(size, begin + kBlockElements);
          const float in_block = largest_of(std::span(values).subspan(begin, end - begin));
          for (std::size_t i = begin; i < end; ++i)
            ASSERT_LE(std::abs(back[i] - values[i]), loss_max(codec, values[i], in_block))
                << to_string(codec) << " value " << i << " of " << size;
        }
      }
    }
  }
}

TEST(BlockCodec, takes_the_bytes_that_it_says) {
  EXPECT_EQ(block_codec(Codec::fp32).bytes_of(2048), 8192U);
  EXPECT_EQ(block_codec(Codec::bf16).bytes_of(2048), 4096U);
  EXPECT_EQ(block_codec(Codec::fp16).bytes_of(2048), 4096U + 8);
  EXPECT_EQ(block_codec(Codec::int8).bytes_of(2048), 2048U + 8);
  EXPECT_EQ(block_codec(Codec::int8).bytes_of(1), 5U);
  for (const Codec codec : kCodecs) EXPECT_EQ(block_codec(codec).bytes_of(0), 0U);
}

TEST(BlockCodec, keeps_what_its_type_can_say) {
  const std::vector<float> values{0, -0.0F, 1, -1.5F, 0.25F, 127, -127};
  for (const Codec codec : {Codec::fp32, Codec::bf16, Codec::fp16}) {
    const auto back =
        decoded(block_codec(codec), encoded(block_codec(codec), values), values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(values[i]))
          << to_string(codec) << " " << values[i];
  }
  const auto levels =
      decoded(block_codec(Codec::int8), encoded(block_codec(Codec::int8), {{127, -127, 1, 0}}), 4);
  EXPECT_EQ(levels, (std::vector<float>{127, -127, 1, 0}));
}

TEST(BlockCodec, what_is_not_finite_stays_so_and_leaves_other_blocks_alone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const Codec codec : kCodecs) {
    for (const float bad :
         {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
          std::bit_cast<float>(0x7f80'0001U), std::bit_cast<float>(0xffff'ffffU)}) {
      for (const std::size_t at : {0, 1023, 1500}) {
        auto values = values_of(3000, 3);
        values[at] = bad;
        const auto back =
            decoded(block_codec(codec), encoded(block_codec(codec), values), values.size());
        EXPECT_FALSE(std::isfinite(back[at])) << to_string(codec) << " " << bad << " at " << at;
        for (std::size_t i = 0; i < values.size(); ++i)
          if (i / kBlockElements != at / kBlockElements) {
            ASSERT_TRUE(std::isfinite(back[i])) << to_string(codec) << " " << i;
          }
      }
    }
  }
}

TEST(BlockCodec, an_error_outlives_a_block_that_is_not_finite) {
  std::vector<float> errors(2000, 0.5F);
  auto values = values_of(2000, 4);
  values[100] = std::numeric_limits<float>::quiet_NaN();
  (void)encoded(block_codec(Codec::int8), values, errors);
  for (std::size_t i = 0; i < kBlockElements; ++i) ASSERT_EQ(errors[i], 0.5F) << i;
  EXPECT_NE(errors[1500], 0.5F);
  for (const float error : errors) ASSERT_TRUE(std::isfinite(error));
}

TEST(BlockCodec, what_int8_sends_over_steps_is_all_that_there_was) {
  constexpr std::size_t kCount = 3000;
  std::vector<float> errors(kCount);
  std::vector<double> wanted(kCount), sent(kCount);
  for (std::uint64_t step = 0; step < 50; ++step) {
    const auto values = values_of(kCount, step, step % 7 == 0 ? 1e-3F : 1.0F);
    const auto back = decoded(block_codec(Codec::int8),
                              encoded(block_codec(Codec::int8), values, errors), kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      wanted[i] += static_cast<double>(values[i]);
      sent[i] += static_cast<double>(back[i]);
    }
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const double owed = errors[i];
    ASSERT_NEAR(sent[i] + owed, wanted[i], 1e-5) << i;
    ASSERT_LE(std::abs(owed), 1.02 / 254) << "no more than half a level is ever owed";
  }
}

TEST(BlockCodec, a_block_too_small_to_scale_is_owed_whole) {
  std::vector<float> errors(4);
  const std::vector<float> tiny{1e-38F, -1e-39F, 0, 1e-44F};
  const auto back =
      decoded(block_codec(Codec::int8), encoded(block_codec(Codec::int8), tiny, errors), 4);
  EXPECT_EQ(back, std::vector<float>(4));
  EXPECT_EQ(errors, tiny);
}

/// Of all bytes, in their order.
template <typename T>
std::uint64_t digest(const std::vector<T>& values) {
  std::uint64_t sum = 0;
  for (const std::byte byte : std::as_bytes(std::span(values)))
    sum = mixed(sum ^ static_cast<std::uint64_t>(byte));
  return sum;
}

// Ranks on CPUs of several kinds must not drift apart: other vectors, the same numbers.
TEST(BlockCodec, has_the_same_bits_on_every_cpu) {
  const std::uint64_t wanted[][2] = {{5948386559177048895U, 4258606287266505113U},
                                     {14096384674444991233U, 17554052544421237590U},
                                     {8128814060624212605U, 4114917478242861373U},
                                     {7619748600861754574U, 11661177436126352660U}};
  for (std::size_t index = 0; index < std::size(kCodecs); ++index) {
    const auto& codec = block_codec(kCodecs[index]);
    std::vector<float> errors(3001, 0.01F);
    const auto one = encoded(codec, values_of(3001, 5), errors);
    const auto other = encoded(codec, values_of(3001, 6), errors);
    const std::byte* const rows[] = {one.data(), other.data()};
    std::vector<float> sum(3001);
    decode_sum(codec, rows, sum);
    EXPECT_EQ(digest(one), wanted[index][0]) << to_string(kCodecs[index]);
    EXPECT_EQ(digest(sum) ^ digest(errors), wanted[index][1]) << to_string(kCodecs[index]);
  }
}

TEST(CodedRows, parts_cover_a_row_and_are_cut_at_blocks) {
  for (const std::size_t elements : {0, 1, 1024, 1025, 10'000, 123'456}) {
    for (const std::size_t ranks : {2, 3, 7}) {
      std::size_t end = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto part = part_of(elements, rank, ranks);
        EXPECT_EQ(part.begin, end);
        EXPECT_TRUE(part.begin % kBlockElements == 0 || part.size() == 0) << part.begin;
        end = part.end;
      }
      EXPECT_EQ(end, elements);
    }
  }
}

TEST(CodedRows, a_sum_is_that_of_all_in_their_order) {
  const auto& codec = block_codec(Codec::fp32);
  const std::vector<std::vector<float>> rows{{1e8F, 1}, {-1e8F, 2}, {1, 3}};
  std::vector<std::vector<std::byte>> bytes;
  std::vector<const std::byte*> all;
  for (const auto& row : rows) bytes.push_back(encoded(codec, row));
  for (const auto& row : bytes) all.push_back(row.data());
  std::vector<float> sum(2);
  decode_sum(codec, all, sum);
  EXPECT_EQ(sum, (std::vector<float>{1, 6}));
  std::swap(all[1], all[2]);
  decode_sum(codec, all, sum);
  EXPECT_EQ(sum, (std::vector<float>{0, 6})) << "1e8 + 1 is 1e8";
}

TEST(CodedRows, a_sum_that_is_sent_on_is_what_its_bytes_say) {
  const auto& codec = block_codec(Codec::int8);
  const auto one = values_of(3000, 1), other = values_of(3000, 2);
  const auto left = encoded(codec, one), right = encoded(codec, other);
  const std::byte* const rows[] = {left.data(), right.data()};
  std::vector<float> exact(3000), sum(3000), errors(3000, 1.0F);
  decode_sum(codec, rows, exact);
  std::vector<std::byte> bytes(codec.bytes_of(3000));
  decode_and_encode_sum(codec, rows, sum, errors, bytes.data());
  EXPECT_EQ(sum, decoded(codec, bytes, 3000));
  for (std::size_t i = 0; i < sum.size(); ++i)
    ASSERT_NEAR(sum[i] + errors[i], exact[i] + 1, 1e-6) << "what is lost on the way is owed, too";
}

TEST(Cosine, is_that_of_the_whole) {
  CosineSums sums;
  const auto one = values_of(1003, 1), other = values_of(1003, 2);
  add_cosine(one, other, sums);
  double product = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    product += static_cast<double>(one[i]) * static_cast<double>(other[i]);
  EXPECT_NEAR(sums.product, product, 1e-9);
  CosineSums same;
  add_cosine(one, one, same);
  EXPECT_DOUBLE_EQ(same.product, same.applied);
  EXPECT_DOUBLE_EQ(same.product, same.exact);
}

}  // namespace
}  // namespace tj::trainer
