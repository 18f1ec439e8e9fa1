// How float32 values become fewer bytes on the wire, and back: in blocks, each for itself, so that
// a row of values can be cut at any of them. Pure, torch-free, and of the same bits on every CPU,
// as all ranks must decode alike.
#pragma once
#include <cstddef>
#include <span>

#include "trainer/comm/reduce_options.h"

namespace tj::trainer {

/// Values that are encoded together. 4 KiB of them stay in the first cache from one kernel to the
/// next.
inline constexpr std::size_t kBlockElements = kReduceBlockElements;

class BlockCodec {
 public:
  virtual ~BlockCodec() = default;

  /// Of so many values in blocks, of which only the last is shorter than kBlockElements.
  virtual std::size_t bytes_of(std::size_t elements) const = 0;
  /// Encodes a block, of at most kBlockElements, and leaves in `values` what the bytes lack of
  /// them, if that can be owed. False where a value is not finite: then all that is decoded of the
  /// block is not finite either, or the value itself at least, and `values` are nothing to keep.
  virtual bool encode(std::span<float> values, std::byte* bytes) const = 0;
  virtual void decode(const std::byte* bytes, std::span<float> values) const = 0;
  /// Adds what decode() gives.
  virtual void add(const std::byte* bytes, std::span<float> values) const = 0;
};

/// Of fp32, bf16, fp16 and int8; a constant. PowerSGD looks at matrices, and sends float32.
const BlockCodec& block_codec(Codec codec);

/// values *= factor
void scale(std::span<float> values, float factor);
/// to = from * factor
void scale_to(std::span<const float> from, float factor, std::span<float> to);
/// values += more
void add_to(std::span<const float> more, std::span<float> values);

/// Where the sums of the check come from: in float64, by the same order on every CPU.
struct CosineSums {
  double product = 0;
  double applied = 0;  // squared
  double exact = 0;    // squared
};
void add_cosine(std::span<const float> applied, std::span<const float> exact, CosineSums& sums);

}  // namespace tj::trainer
