#include "trainer/comm/reduce/coded_rows.h"

#include <algorithm>

namespace tj::trainer {
namespace {

/// A block of a row, and where its bytes begin.
struct Block {
  RowPart part;
  std::size_t bytes = 0;
};

template <typename Do>
void each_block(const BlockCodec& codec, std::size_t elements, Do&& with) {
  const std::size_t block_bytes = codec.bytes_of(kBlockElements);
  std::size_t bytes = 0;
  for (std::size_t begin = 0; begin < elements; begin += kBlockElements) {
    const RowPart part{.begin = begin, .end = std::min(elements, begin + kBlockElements)};
    with(Block{.part = part, .bytes = bytes});
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
                std::span<float> errors, std::byte* bytes) {
  float memory[kBlockElements];
  each_block(codec, values.size(), [&](const Block& block) {
    const std::span part(memory, block.part.size());
    const auto owed = block.part.of(errors);
    scale_to(values.subspan(block.part.begin, part.size()), factor, part);
    if (!owed.empty()) add_to(owed, part);
    const bool is_finite = codec.encode(part, bytes + block.bytes);
    if (is_finite && !owed.empty()) std::ranges::copy(part, owed.begin());
  });
}

void decode_sum(const BlockCodec& codec, std::span<const std::byte* const> encoded,
                std::span<float> values) {
  each_block(codec, values.size(), [&](const Block& block) {
    decode_block(codec, encoded, block.bytes, block.part.of(values));
  });
}

void decode_and_encode_sum(const BlockCodec& codec, std::span<const std::byte* const> encoded,
                           std::span<float> values, std::span<float> errors, std::byte* bytes) {
  float memory[kBlockElements];
  each_block(codec, values.size(), [&](const Block& block) {
    const std::span part(memory, block.part.size());
    const auto owed = block.part.of(errors);
    decode_block(codec, encoded, block.bytes, part);
    const bool is_finite = codec.encode(part, bytes + block.bytes);
    if (is_finite && !owed.empty()) add_to(part, owed);
    codec.decode(bytes + block.bytes, block.part.of(values));
  });
}

}  // namespace tj::trainer
