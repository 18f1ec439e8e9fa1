// Whole rows through a codec, block by block, so that each block is in the cache for all that is
// done with it. Pure, torch-free.
#pragma once
#include <cstddef>
#include <span>

#include "trainer/comm/reduce/block_codec.h"

namespace tj::trainer {

/// A part of a row, cut at blocks; it may be empty.
struct RowPart {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
  std::span<float> of(std::span<float> row) const {
    return row.empty() ? row : row.subspan(begin, size());
  }
  bool operator==(const RowPart&) const = default;
};
/// The row's part `index` of `count` that are as equal as blocks allow.
RowPart part_of(std::size_t elements, std::size_t index, std::size_t count);

/// Encodes values * factor + errors. The errors, as many or none, then are what the bytes lack;
/// those of a block that is not finite stay.
void encode_row(const BlockCodec& codec, std::span<const float> values, float factor,
                std::span<float> errors, std::byte* bytes);

/// values = the sum of what all of `encoded` say, in their order.
void decode_sum(const BlockCodec& codec, std::span<const std::byte* const> encoded,
                std::span<float> values);

/// The same, encoded again: `values` are what `bytes` say, and what they lack is added to the
/// errors.
void decode_and_encode_sum(const BlockCodec& codec, std::span<const std::byte* const> encoded,
                           std::span<float> values, std::span<float> errors, std::byte* bytes);

}  // namespace tj::trainer
