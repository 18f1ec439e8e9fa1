// fp16 on the wire; sums are of float32. The conversions are those of Fabian Giesen ("Half to float
// done quickly", 2012; rounding to nearest even), without a branch.
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "trainer/comm/reduce/codecs.h"
#include "trainer/comm/reduce/magnitude.h"
#include "trainer/comm/reduce/vectorised.h"

namespace tj::trainer {
namespace {

constexpr std::uint32_t kSign = 0x8000'0000;
constexpr std::uint32_t kSmallestNormal = 113 << 23;  // of binary16, as a float32
constexpr std::uint32_t kSubnormalShift = (127 - 15 + 23 - 10 + 1) << 23;
constexpr std::uint32_t kRebias = (127 - 15) << 23;
constexpr std::uint32_t kExponentOfHalf = 0x7c00 << 13;
constexpr int kLargestExponent = 14;    // values are below 2^15, the type ends at 2^16
constexpr int kScaleExponentMax = 100;  // of what is that small nothing is left anyway

/// Of finite values below 2^15.
TJ_VECTORISED void encode_values(const float* values, float factor, std::uint16_t* halves,
                                 std::size_t count) {
  const float shift = std::bit_cast<float>(kSubnormalShift);
  float scaled[kBlockElements];
  std::uint32_t bits[kBlockElements];
  for (std::size_t i = 0; i < count; ++i) scaled[i] = values[i] * factor;
  std::memcpy(bits, scaled, count * sizeof(float));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t sign = bits[i] & kSign;
    const std::uint32_t magnitude = bits[i] ^ sign;
    const std::uint32_t normal = (magnitude - kRebias + 0xfff + (magnitude >> 13 & 1)) >> 13;
    const float moved = std::bit_cast<float>(magnitude) + shift;
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(moved) - kSubnormalShift;
    halves[i] =
        static_cast<std::uint16_t>((magnitude < kSmallestNormal ? subnormal : normal) | sign >> 16);
  }
}

/// Of halves that are finite.
TJ_VECTORISED void decode_values(const std::uint16_t* halves, float factor, float* values,
                                 std::size_t count) {
  const float shift = std::bit_cast<float>(kSmallestNormal);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t half = halves[i];
    const std::uint32_t normal = ((half & 0x7fff) << 13) + kRebias;
    const bool is_subnormal = (half << 13 & kExponentOfHalf) == 0;
    const float small = std::bit_cast<float>(normal + (1 << 23)) - shift;
    const std::uint32_t magnitude = is_subnormal ? std::bit_cast<std::uint32_t>(small) : normal;
    values[i] = std::bit_cast<float>(magnitude | (half & 0x8000) << 16) * factor;
  }
}

class Fp16Codec final : public BlockCodec {
 public:
  std::size_t bytes_of(std::size_t elements) const override {
    return elements * sizeof(std::uint16_t) +
           (elements + kBlockElements - 1) / kBlockElements * sizeof(float);
  }

  /// What it leaves in `values` is not owed: rounding to eleven bits is noise.
  bool encode(std::span<float> values, std::byte* bytes) const override {
    const std::int32_t largest = largest_magnitude_bits(values);
    const bool is_finite = largest < kInfinityBits;
    const float inverse =
        is_finite ? power_of_two(exponent_for(largest)) : std::numeric_limits<float>::quiet_NaN();
    std::memcpy(bytes, &inverse, sizeof inverse);
    std::uint16_t halves[kBlockElements] = {};
    if (is_finite)
      encode_values(values.data(), power_of_two(-exponent_for(largest)), halves, values.size());
    std::memcpy(bytes + sizeof inverse, halves, values.size() * sizeof(std::uint16_t));
    return is_finite;
  }

  void decode(const std::byte* bytes, std::span<float> values) const override {
    float factor = 0;
    std::uint16_t halves[kBlockElements];
    std::memcpy(&factor, bytes, sizeof factor);
    std::memcpy(halves, bytes + sizeof factor, values.size() * sizeof(std::uint16_t));
    decode_values(halves, factor, values.data(), values.size());
  }

  void add(const std::byte* bytes, std::span<float> values) const override {
    float block[kBlockElements];
    decode(bytes, {block, values.size()});
    add_to({block, values.size()}, values);
  }

 private:
  /// Of what the halves are multiplied by.
  static int exponent_for(std::int32_t largest) {
    const int exponent = (largest >> 23) - 127 - kLargestExponent;
    return exponent < -kScaleExponentMax ? -kScaleExponentMax : exponent;
  }
  static float power_of_two(int exponent) { return std::bit_cast<float>((exponent + 127) << 23); }
};

}  // namespace

const BlockCodec& fp16_codec() {
  static const Fp16Codec codec;
  return codec;
}

}  // namespace tj::trainer
