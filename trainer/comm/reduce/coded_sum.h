// The sum over all ranks of rows of floats, of which each sends what a codec makes of its own. Two
// ranks send each other everything, and both add the two in their order. More ranks add a part of
// each row, and send the sum around, encoded again: as many bytes, one rounding more. In either way
// all ranks have the same bits, and they are those of each row alone, whatever others are summed
// with it. Includes torch.
#pragma once
#include <span>
#include <vector>

#include "trainer/comm/reduce/coded_rows.h"
#include "trainer/comm/reduce/wire.h"

namespace tj::trainer {

/// A sum takes as many tags of the wire.
inline constexpr int kTagsOfSum = 2;

/// One of the rows.
struct SumRow {
  std::span<float> values;
  std::span<float> errors = {};  // as many, or none
  std::size_t first_rank = 0;    // who adds its first part: not the same one of all short rows
};

class CodedSum {
 public:
  /// `first_tag`: of this sum alone. All must outlive it.
  CodedSum(Wire& wire, const BlockCodec& codec, int first_tag)
      : wire_(wire), codec_(codec), tag_(first_tag) {}

  /// Encodes values * factor + errors, and begins to send it. The rows' memory stays until
  /// finish().
  void start(std::vector<SumRow> rows, float factor);
  /// Returns with the sums in the rows' values.
  void finish();
  /// Returns once the other ranks have all that this one sends.
  void wait_sent();

 private:
  bool is_of_two() const { return wire_.world_size() == 2; }
  /// What of a row is sent to `rank`, and added there.
  RowPart part(const SumRow& row, int rank) const;
  std::size_t elements_of(int rank) const;
  at::Tensor bytes_of(int rank) const;
  void encode_for(int rank, const at::Tensor& bytes, float factor) const;
  void decode_from(std::span<const at::Tensor> encoded, int rank) const;
  void add_own_parts();

  Wire& wire_;
  const BlockCodec& codec_;
  const int tag_;
  std::vector<SumRow> rows_;
  std::vector<at::Tensor>
      encoded_;  // by rank: what is sent to it; of two ranks the other one's only
  std::vector<at::Tensor> received_;  // by rank: what comes from it, or would
  std::vector<at::Tensor> sums_;      // by rank: the sum of its parts, encoded
  Wire::Round first_, second_;
};

}  // namespace tj::trainer
