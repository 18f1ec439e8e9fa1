// The exact reduction in the shape of a codec: for PowerSGD's factors, for the check, and for a run
// that has given its codec up.
#include <algorithm>
#include <cstring>

#include "trainer/comm/reduce/codecs.h"

namespace tj::trainer {
namespace {

class Fp32Codec final : public BlockCodec {
 public:
  std::size_t bytes_of(std::size_t elements) const override { return elements * sizeof(float); }

  bool encode(std::span<float> values, std::byte* bytes) const override {
    std::memcpy(bytes, values.data(), values.size_bytes());
    std::ranges::fill(values, 0.0F);
    return true;
  }

  void decode(const std::byte* bytes, std::span<float> values) const override {
    std::memcpy(values.data(), bytes, values.size_bytes());
  }

  void add(const std::byte* bytes, std::span<float> values) const override {
    float block[kBlockElements];
    std::memcpy(block, bytes, values.size_bytes());
    add_to({block, values.size()}, values);
  }
};

}  // namespace

const BlockCodec& fp32_codec() {
  static const Fp32Codec codec;
  return codec;
}

}  // namespace tj::trainer
