// Whole rows through a codec, block by block, so that each block is in the cache for all that is done
// with it. Pure, torch-free.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "trainer/comm/reduce/block_codec.h"
#include "trainer/comm/reduce/error_row.h"

namespace tj::trainer {

/// A part of a row, cut at blocks; both may be empty.
struct RowPart {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
  bool operator==(const RowPart&) const = default;
};
/// The row's equal share of part `index` of `count`.
RowPart part_of(std::size_t elements, std::size_t index, std::size_t count);

/// Encodes values * factor + errors, which then are what the bytes lack; those of a block that is
/// not finite stay. `begin`: of `values` in the row of the errors.
void encode_row(const BlockCodec& codec, std::span<const float> values, float factor,
                const ErrorRow& errors, std::size_t begin, std::byte* bytes);

/// values = the sum of what all of `encoded` say, in their order.
void decode_sum(const BlockCodec& codec, std::span<const std::byte* const> encoded,
                std::span<float> values);

/// The same, encoded again: `values` are what `bytes` say, and what they lack is added to the errors.
void decode_and_encode_sum(const BlockCodec& codec, std::span<const std::byte* const> encoded,
                           std::span<float> values, const ErrorRow& errors, std::size_t begin,
                           std::byte* bytes);

}  // namespace tj::trainer
