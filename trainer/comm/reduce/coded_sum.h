// The sum over all ranks of a row of floats, of which each sends what a codec makes of its own.
// Two ranks send each other everything, and both add the two in their order. More ranks add a part
// of the row each, and send the sum around, encoded again: as many bytes, one rounding more. In
// either way all ranks have the same bits. Includes torch.
#pragma once
#include <span>
#include <vector>

#include "trainer/comm/reduce/coded_rows.h"
#include "trainer/comm/reduce/wire.h"

namespace tj::trainer {

/// A sum takes as many tags of the wire.
inline constexpr int kTagsOfSum = 2;

class CodedSum {
 public:
  /// `first_tag`: of this sum alone. All must outlive it.
  CodedSum(Wire& wire, const BlockCodec& codec, int first_tag)
      : wire_(wire), codec_(codec), tag_(first_tag) {}

  /// Encodes values * factor + errors, and begins to send it. `values` stay until finish().
  void start(std::span<float> values, float factor, ErrorRow errors = {});
  /// Returns with the sum in `values`.
  void finish();
  /// Returns once the other ranks have all that this one sends.
  void wait_sent();

 private:
  at::Tensor bytes(std::size_t elements) const;
  void start_parts(float factor);
  void start_whole(float factor);
  void finish_whole();
  void finish_parts();
  RowPart part(int rank) const;

  Wire& wire_;
  const BlockCodec& codec_;
  const int tag_;
  std::span<float> values_;
  ErrorRow errors_;
  std::vector<at::Tensor> encoded_;   // by rank: what is sent to it; of two ranks both the same
  std::vector<at::Tensor> received_;  // by rank: what comes from it
  std::vector<at::Tensor> sums_;      // by rank: the sum of its part, encoded
  Wire::Round first_, second_;
};

}  // namespace tj::trainer
