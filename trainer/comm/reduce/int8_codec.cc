// int8 with a scale for each block. Its largest magnitude is 127, so that no value is cut off, and
// what rounding takes away is at most half a 127th of it.
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "trainer/comm/reduce/codecs.h"
#include "trainer/comm/reduce/magnitude.h"
#include "trainer/comm/reduce/vectorised.h"

namespace tj::trainer {
namespace {

constexpr float kLevels = 127;
/// Added to a small number it leaves in the lowest bits the nearest whole one, ties to even.
constexpr float kRounder = 12'582'912.0F;  // 1.5 * 2^23
constexpr std::int32_t kRounderBits = 0x4b40'0000;
/// Below it the reciprocal of a scale may overflow; the block is sent as zeros, and owed.
constexpr float kLargestMin = 1e-30F;
static_assert(std::bit_cast<std::int32_t>(kRounder) == kRounderBits);

/// Leaves in `values` what the levels lack.
TJ_VECTORISED void encode_values(float* values, std::int8_t* levels, std::size_t count, float scale,
                                 float inverse) {
  std::int32_t whole[kBlockElements];
  float rounded[kBlockElements];
  for (std::size_t i = 0; i < count; ++i) rounded[i] = values[i] * inverse + kRounder;
  std::memcpy(whole, rounded, count * sizeof(float));
  for (std::size_t i = 0; i < count; ++i) {
    values[i] -= (rounded[i] - kRounder) * scale;
    levels[i] = static_cast<std::int8_t>(whole[i] - kRounderBits);
  }
}

TJ_VECTORISED void decode_values(const std::int8_t* levels, float scale, float* values,
                                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(levels[i]) * scale;
}

TJ_VECTORISED void add_values(const std::int8_t* levels, float scale, float* values,
                              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] += static_cast<float>(levels[i]) * scale;
}

float scale_at(const std::byte* bytes) {
  float scale = 0;
  std::memcpy(&scale, bytes, sizeof scale);
  return scale;
}

class Int8Codec final : public BlockCodec {
 public:
  std::size_t bytes_of(std::size_t elements) const override {
    return elements + (elements + kBlockElements - 1) / kBlockElements * sizeof(float);
  }

  bool encode(std::span<float> values, std::byte* bytes) const override {
    const std::int32_t bits = largest_magnitude_bits(values);
    const bool is_finite = bits < kInfinityBits;
    const float largest = std::bit_cast<float>(bits);
    const float scale = is_finite ? (largest < kLargestMin ? 0.0F : largest / kLevels)
                                  : std::numeric_limits<float>::quiet_NaN();
    std::memcpy(bytes, &scale, sizeof scale);
    auto* const levels = reinterpret_cast<std::int8_t*>(bytes + sizeof scale);
    if (is_finite && scale > 0) {
      encode_values(values.data(), levels, values.size(), scale, kLevels / largest);
    } else {
      std::memset(levels, 0, values.size());
    }
    return is_finite;
  }

  void decode(const std::byte* bytes, std::span<float> values) const override {
    decode_values(levels_at(bytes), scale_at(bytes), values.data(), values.size());
  }

  void add(const std::byte* bytes, std::span<float> values) const override {
    add_values(levels_at(bytes), scale_at(bytes), values.data(), values.size());
  }

 private:
  static const std::int8_t* levels_at(const std::byte* bytes) {
    return reinterpret_cast<const std::int8_t*>(bytes + sizeof(float));
  }
};

}  // namespace

const BlockCodec& int8_codec() {
  static const Int8Codec codec;
  return codec;
}

}  // namespace tj::trainer
