// A bucket's way from what this rank has to the mean over all ranks: what of it is done before the
// others are waited for, and what behind. Includes torch.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "trainer/comm/reduce/reduce_memory.h"
#include "trainer/comm/reduce/wire.h"

namespace tj::trainer {

class BucketJob {
 public:
  virtual ~BucketJob() = default;
  /// Encodes and begins to send.
  virtual void start() = 0;
  /// Waits for the others. The bucket then has the same bits on all ranks.
  virtual void finish() = 0;
  /// Until nobody needs this rank's bytes any more.
  virtual void wait_sent() = 0;
};

/// Each job may take as many tags of the wire.
inline constexpr int kTagsOfJob = 8;

/// The gradient of one parameter in a bucket.
struct BucketPiece {
  std::span<float> values;
  ReduceMemory::Entry* entry = nullptr;
  std::span<float> error() const;  // empty: there is no feedback
};

struct BucketPlan {
  std::span<float> values;  // of the whole bucket
  std::vector<BucketPiece> pieces;
  float factor = 1;  // makes a share of the mean of this rank's gradients
  int first_tag = 0;
};

/// By a codec of blocks.
std::unique_ptr<BucketJob> make_row_job(Wire& wire, const BucketPlan& plan, Codec codec);
/// By PowerSGD.
std::unique_ptr<BucketJob> make_power_job(Wire& wire, const BucketPlan& plan);

struct CosineSums;
/// `job`, and beside it the exact mean, with which its result is compared into `sums`.
std::unique_ptr<BucketJob> make_checked_job(Wire& wire, const BucketPlan& plan,
                                            std::unique_ptr<BucketJob> job, CosineSums& sums);

}  // namespace tj::trainer
