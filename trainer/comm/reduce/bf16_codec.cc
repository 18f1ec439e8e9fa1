// bfloat16 on the wire; sums are of float32.
#include <cstdint>
#include <cstring>

#include "trainer/comm/reduce/codecs.h"
#include "trainer/comm/reduce/vectorised.h"

namespace tj::trainer {
namespace {

constexpr std::uint32_t kInfinity = 0x7f80'0000;
constexpr std::uint32_t kMagnitude = 0x7fff'ffff;
constexpr std::uint16_t kQuietBit = 0x40;

/// Rounding up by its bits would make an infinity, or a number, of some NaNs.
TJ_VECTORISED void encode_values(const std::uint32_t* from, std::uint16_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = from[i];
    const auto rounded = static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    const auto not_a_number = static_cast<std::uint16_t>(bits >> 16 | kQuietBit);
    to[i] = (bits & kMagnitude) > kInfinity ? not_a_number : rounded;
  }
}

TJ_VECTORISED void decode_values(const std::uint16_t* from, std::uint32_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::uint32_t>(from[i]) << 16;
}

class Bf16Codec final : public BlockCodec {
 public:
  std::size_t bytes_of(std::size_t elements) const override {
    return elements * sizeof(std::uint16_t);
  }

  bool encode(std::span<float> values, std::byte* bytes) const override {
    std::uint32_t bits[kBlockElements];
    std::uint16_t encoded[kBlockElements];
    std::memcpy(bits, values.data(), values.size_bytes());
    encode_values(bits, encoded, values.size());
    std::memcpy(bytes, encoded, values.size() * sizeof(std::uint16_t));
    return true;
  }

  void decode(const std::byte* bytes, std::span<float> values) const override {
    std::uint32_t bits[kBlockElements];
    std::uint16_t encoded[kBlockElements];
    std::memcpy(encoded, bytes, values.size() * sizeof(std::uint16_t));
    decode_values(encoded, bits, values.size());
    std::memcpy(values.data(), bits, values.size_bytes());
  }

  void add(const std::byte* bytes, std::span<float> values) const override {
    float block[kBlockElements];
    decode(bytes, {block, values.size()});
    add_to({block, values.size()}, values);
  }
};

}  // namespace

const BlockCodec& bf16_codec() {
  static const Bf16Codec codec;
  return codec;
}

}  // namespace tj::trainer
