#include "trainer/comm/reduce/coded_rows.h"

#include <algorithm>

namespace tj::trainer {
namespace {

/// Calls `with` for each block: where it begins in the row, its size, and where its bytes begin.
template <typename Do>
void each_block(const BlockCodec& codec, std::size_t elements, Do&& with) {
  const std::size_t block_bytes = codec.bytes_of(kBlockElements);
  std::size_t bytes = 0;
  for (std::size_t begin = 0; begin < elements; begin += kBlockElements) {
    with(begin, std::min(kBlockElements, elements - begin), bytes);
    bytes += block_bytes;
  }
}

void decode_block(const BlockCodec& codec, std::span<const std::byte* const> encoded,
                  std::size_t offset, std::span<float> values) {
  codec.decode(encoded.front() + offset, values);
  for (const auto* const bytes : encoded.subspan(1)) codec.add(bytes + offset, values);
}

}  // namespace

RowPart part_of(std::size_t elements, std::size_t index, std::size_t count) {
  const std::size_t blocks = (elements + kBlockElements - 1) / kBlockElements;
  const std::size_t size = (blocks + count - 1) / count * kBlockElements;
  return {.begin = std::min(elements, index * size), .end = std::min(elements, (index + 1) * size)};
}

void encode_row(const BlockCodec& codec, std::span<const float> values, float factor,
                const ErrorRow& errors, std::size_t begin, std::byte* bytes) {
  float block[kBlockElements];
  each_block(codec, values.size(), [&](std::size_t at, std::size_t size, std::size_t offset) {
    const std::span part(block, size);
    scale_to(values.subspan(at, size), factor, part);
    errors.add_to_values(begin + at, part);
    if (codec.encode(part, bytes + offset)) errors.store(begin + at, part);
  });
}

void decode_sum(const BlockCodec& codec, std::span<const std::byte* const> encoded,
                std::span<float> values) {
  each_block(codec, values.size(), [&](std::size_t at, std::size_t size, std::size_t offset) {
    decode_block(codec, encoded, offset, values.subspan(at, size));
  });
}

void decode_and_encode_sum(const BlockCodec& codec, std::span<const std::byte* const> encoded,
                           std::span<float> values, const ErrorRow& errors, std::size_t begin,
                           std::byte* bytes) {
  float block[kBlockElements];
  each_block(codec, values.size(), [&](std::size_t at, std::size_t size, std::size_t offset) {
    const std::span part(block, size);
    decode_block(codec, encoded, offset, part);
    if (codec.encode(part, bytes + offset)) errors.add(begin + at, part);
    codec.decode(bytes + offset, values.subspan(at, size));
  });
}

}  // namespace tj::trainer
