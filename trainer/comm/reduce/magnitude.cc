#include "trainer/comm/reduce/magnitude.h"

#include <algorithm>
#include <cstring>

#include "trainer/comm/reduce/block_codec.h"
#include "trainer/comm/reduce/vectorised.h"

namespace tj::trainer {
namespace {

TJ_VECTORISED std::int32_t largest(const std::int32_t* bits, std::size_t count) {
  std::int32_t found = 0;
  for (std::size_t i = 0; i < count; ++i) found = std::max(found, bits[i] & 0x7fff'ffff);
  return found;
}

}  // namespace

std::int32_t largest_magnitude_bits(std::span<const float> values) {
  std::int32_t found = 0;
  std::int32_t bits[kBlockElements];
  for (std::size_t at = 0; at < values.size(); at += kBlockElements) {
    const auto count = std::min(kBlockElements, values.size() - at);
    std::memcpy(bits, values.data() + at, count * sizeof(float));
    found = std::max(found, largest(bits, count));
  }
  return found;
}

}  // namespace tj::trainer
