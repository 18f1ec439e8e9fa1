// A bucket by PowerSGD: each large matrix goes as two thin factors, each summed over the ranks, the
// rest as it is. What a rank leaves out of its own matrix it owes to the next step.
#include <algorithm>
#include <limits>

#include "trainer/comm/reduce/bucket_job.h"
#include "trainer/comm/reduce/coded_sum.h"
#include "trainer/comm/reduce/low_rank.h"
#include "trainer/comm/reduce/magnitude.h"

namespace tj::trainer {
namespace {

bool is_finite(std::span<const float> values) {
  return largest_magnitude_bits(values) < kInfinityBits;
}

/// A matrix of the bucket and where its factors are.
struct Matrix {
  BucketPiece piece;
  MatrixView view;
  std::span<float> factor;  // Q, of the memory
  std::span<float> left;    // P
  std::span<float> own;     // this rank's part of the new Q
  std::span<float> right;   // and the sum of all
  bool is_finite = true;    // so far, over all ranks
};

class PowerJob final : public BucketJob {
 public:
  PowerJob(Wire& wire, const BucketPlan& plan)
      : plan_(plan),
        lefts_sum_(wire, block_codec(Codec::fp32), plan.first_tag),
        rights_sum_(wire, block_codec(Codec::fp32), plan.first_tag + kTagsOfSum) {
    for (const auto& piece : plan.pieces) add(piece);
    place();
  }

  void start() override {
    scale(plan_.values, plan_.factor);
    for (const auto& piece : plan_.pieces)
      if (const auto error = piece.error(); !error.empty()) add_to(error, piece.values);
    auto place = std::span(lefts_);
    for (const auto& piece : plain_) {
      std::ranges::copy(piece.values, place.begin());
      place = place.subspan(piece.values.size());
    }
    for (auto& matrix : matrices_) {
      renew(matrix);
      multiply(matrix.view, matrix.factor, matrix.left);
    }
    lefts_sum_.start({{.values = lefts_}}, 1);
  }

  void finish() override {
    lefts_sum_.finish();
    take_plain();
    for (auto& matrix : matrices_) {
      matrix.is_finite = is_finite(matrix.left);
      orthonormalise(matrix.left, matrix.view.rows);
      multiply_transposed(matrix.view, matrix.left, matrix.own);
    }
    std::ranges::copy(owns_, rights_.begin());
    rights_sum_.start({{.values = rights_}}, 1);
    rights_sum_.finish();
    for (auto& matrix : matrices_) take(matrix);
  }

  void wait_sent() override {
    lefts_sum_.wait_sent();
    rights_sum_.wait_sent();
  }

 private:
  void add(const BucketPiece& piece) {
    auto& entry = *piece.entry;
    if (!entry.factor.defined()) {
      plain_.push_back(piece);
      return;
    }
    matrices_.push_back({.piece = piece,
                         .view = {.values = piece.values.data(),
                                  .rows = static_cast<std::size_t>(entry.rows),
                                  .columns = static_cast<std::size_t>(entry.columns)},
                         .factor = {entry.factor.mutable_data_ptr<float>(),
                                    static_cast<std::size_t>(entry.factor.numel())}});
  }

  void place() {
    std::size_t lefts = 0, rights = 0;
    for (const auto& piece : plain_) lefts += piece.values.size();
    const std::size_t plain = lefts;
    for (const auto& matrix : matrices_) {
      lefts += matrix.view.rows * rank_of(matrix);
      rights += matrix.factor.size();
    }
    lefts_.resize(lefts);
    owns_.resize(rights);
    rights_.resize(rights);
    std::size_t left = plain, right = 0;
    for (auto& matrix : matrices_) {
      const auto size = matrix.factor.size();
      matrix.left = std::span(lefts_).subspan(left, matrix.view.rows * rank_of(matrix));
      matrix.own = std::span(owns_).subspan(right, size);
      matrix.right = std::span(rights_).subspan(right, size);
      left += matrix.left.size();
      right += size;
    }
  }

  static std::size_t rank_of(const Matrix& matrix) {
    return matrix.factor.size() / matrix.view.columns;
  }

  /// The factor of the step before spans what was the largest then: a warm start.
  static void renew(Matrix& matrix) {
    orthonormalise(matrix.factor, matrix.view.columns);
    refill(matrix.factor, matrix.view.columns, matrix.piece.entry->seed);
    orthonormalise(matrix.factor, matrix.view.columns);
  }

  /// What was owed to them, by another codec before, is paid.
  void take_plain() {
    auto place = std::span(lefts_);
    for (const auto& piece : plain_) {
      std::ranges::copy(place.first(piece.values.size()), piece.values.begin());
      if (is_finite(piece.values)) std::ranges::fill(piece.error(), 0.0F);
      place = place.subspan(piece.values.size());
    }
  }

  static void take(const Matrix& matrix) {
    if (!matrix.is_finite || !is_finite(matrix.right)) {
      // The step will be left out: the memory stays as it is.
      std::ranges::fill(matrix.piece.values, std::numeric_limits<float>::quiet_NaN());
      return;
    }
    rebuild(matrix.view, matrix.left, matrix.own, matrix.right, matrix.piece.error());
    std::ranges::copy(matrix.right, matrix.factor.begin());
  }

  const BucketPlan plan_;
  CodedSum lefts_sum_, rights_sum_;
  std::vector<BucketPiece> plain_;
  std::vector<Matrix> matrices_;
  std::vector<float> lefts_;   // what is plain, then P of all matrices
  std::vector<float> owns_;    // Q of all matrices, this rank's part
  std::vector<float> rights_;  // and their sum
};

}  // namespace

std::unique_ptr<BucketJob> make_power_job(Wire& wire, const BucketPlan& plan) {
  return std::make_unique<PowerJob>(wire, plan);
}

}  // namespace tj::trainer
