// The compressed reduction of a training's gradients, as a hook of torch's Reducer. Backward only
// hands its buckets over: one thread encodes them, another one waits for those of the other ranks
// and decodes. The buckets of a GPU are copied to the host for it, by a stream of their own: what
// is worth compressing has a network that is slower than that by far. Includes torch.
#pragma once
#include <exception>
#include <memory>
#include <optional>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "trainer/comm/reduce/block_codec.h"
#include "trainer/comm/reduce/bucket_job.h"
#include "trainer/comm/reduce/wire.h"
#include "trainer/comm/reduce/work_queue.h"

namespace tj::trainer {

class CodedReduction {
 public:
  /// `backend` carries tensors of the CPU between all ranks. It and `memory` outlive this.
  CodedReduction(c10d::Backend& backend, int rank, int world_size, const ReduceOptions& options,
                 ReduceMemory& memory);
  /// Ends whatever still waits for another rank.
  ~CodedReduction();

  /// Before the pass whose backward completes a step.
  void begin_step();
  /// The future is the bucket itself, with the mean; or what Gloo threw.
  c10::intrusive_ptr<c10::ivalue::Future> reduce(c10d::GradBucket& bucket);
  /// After backward: the cosine of what it gave to the exact mean, if it was checked. Once. Not a
  /// number where one of them is not finite.
  std::optional<double> take_cosine();
  CommVolume volume() const { return wire_.volume(); }

 private:
  std::unique_ptr<BucketJob> job_of(const c10d::GradBucket& bucket, const at::Tensor& on_host);

  const ReduceOptions options_;
  ReduceMemory& memory_;
  std::uint64_t jobs_ = 0;  // so far, the same number on all ranks
  Codec codec_of_step_ = Codec::fp32;
  bool is_checked_ = false;
  CosineSums cosine_;
  Wire wire_;
  WorkQueue finisher_;
  WorkQueue starter_;  // ends first
};

/// A Reducer owns its hook.
std::unique_ptr<c10d::CommHookInterface> hook_of(std::shared_ptr<CodedReduction> reduction);

}  // namespace tj::trainer
