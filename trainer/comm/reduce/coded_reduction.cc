#include "trainer/comm/reduce/coded_reduction.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/types.h>

#include <cmath>

namespace tj::trainer {
namespace {
using Future = c10::ivalue::Future;

constexpr std::size_t kBucketsMax = 64;  // that wait; then backward does
constexpr int kFirstTag = 1 << 20;       // above those of the communicator's own sends
constexpr std::uint64_t kJobsOfTags = 1 << 16;

/// Whatever a task throws comes out of backward.
template <typename Do>
bool succeeds(const c10::intrusive_ptr<Future>& future, Do&& work) {
  try {
    work();
    return true;
  } catch (...) {
    future->setErrorIfNeeded(std::current_exception());
    return false;
  }
}

/// A bucket where the codecs can read and write it.
class Staged {
 public:
  /// On the thread of backward, whose device makes the bucket at present.
  explicit Staged(at::Tensor bucket) : bucket_(std::move(bucket)) {
    if (bucket_.is_cpu()) {
      on_host_ = bucket_;
      return;
    }
    const c10::impl::VirtualGuardImpl device(bucket_.device().type());
    is_made_.emplace(bucket_.device().type());
    is_made_->record(device.getStream(bucket_.device()));
    stream_ = device.getStreamFromGlobalPool(bucket_.device());
    on_host_ = torch::empty(bucket_.sizes(), at::kFloat);
  }

  const at::Tensor& on_host() const { return on_host_; }
  c10::intrusive_ptr<Future> future() const {
    std::vector<c10::Device> devices;
    if (!bucket_.is_cpu()) devices.push_back(bucket_.device());
    return c10::make_intrusive<Future>(c10::TensorType::get(), devices);
  }

  void fetch() {
    if (!stream_) return;
    const c10::StreamGuard guard(*stream_);
    is_made_->block(*stream_);
    on_host_.copy_(bucket_);
  }
  void complete(Future& future) {
    if (!stream_) return future.markCompleted(bucket_);
    const c10::StreamGuard guard(*stream_);
    bucket_.copy_(on_host_);
    future.markCompleted(bucket_);
  }

 private:
  at::Tensor bucket_;
  at::Tensor on_host_;
  std::optional<c10::Event> is_made_;
  std::optional<c10::Stream> stream_;
};

class Hook final : public c10d::CppCommHookInterface<std::shared_ptr<CodedReduction>> {
 public:
  using CppCommHookInterface::CppCommHookInterface;
  c10::intrusive_ptr<Future> runHook(c10d::GradBucket& bucket) override {
    return state_->reduce(bucket);
  }
};

}  // namespace

CodedReduction::CodedReduction(c10d::Backend& backend, int rank, int world_size,
                               const ReduceOptions& options, ReduceMemory& memory)
    : options_(options),
      memory_(memory),
      wire_(backend, rank, world_size),
      finisher_(kBucketsMax),
      starter_(kBucketsMax) {}

CodedReduction::~CodedReduction() { wire_.stop(); }

void CodedReduction::begin_step() {
  const std::int64_t step = ++memory_.steps;
  const bool is_power = options_.codec == Codec::powersgd;
  const bool is_exact = memory_.is_exact || (is_power && step <= kPowerSgdExactSteps);
  codec_of_step_ = is_exact ? Codec::fp32 : options_.codec;
  is_checked_ = !is_exact && options_.check_every > 0 && step % options_.check_every == 0;
  cosine_ = {};
}

std::unique_ptr<BucketJob> CodedReduction::job_of(const c10d::GradBucket& bucket,
                                                  const at::Tensor& on_host) {
  TORCH_CHECK(on_host.is_contiguous() && on_host.scalar_type() == at::kFloat,
              "compressed buckets are flat and of float32");
  BucketPlan plan{
      .values = {on_host.mutable_data_ptr<float>(), static_cast<std::size_t>(on_host.numel())},
      .factor = 1.0F / static_cast<float>(wire_.world_size()),
      .first_tag = kFirstTag + static_cast<int>(jobs_++ % kJobsOfTags) * kTagsOfJob};
  std::size_t at = 0;
  for (const auto& parameter : bucket.getParameters()) {
    const auto size = static_cast<std::size_t>(parameter.numel());
    plan.pieces.push_back(
        {.values = plan.values.subspan(at, size), .entry = &memory_.of(parameter)});
    at += size;
  }
  TORCH_CHECK(at == plan.values.size(), "a bucket is its parameters one after another");
  auto job = codec_of_step_ == Codec::powersgd ? make_power_job(wire_, plan)
                                               : make_row_job(wire_, plan, codec_of_step_);
  return is_checked_ ? make_checked_job(wire_, plan, std::move(job), cosine_) : std::move(job);
}

c10::intrusive_ptr<Future> CodedReduction::reduce(c10d::GradBucket& bucket) {
  const auto staged = std::make_shared<Staged>(bucket.getBuffer());
  const std::shared_ptr job = job_of(bucket, staged->on_host());
  auto future = staged->future();
  const auto start = [job, staged] {
    staged->fetch();
    job->start();
  };
  const auto finish = [job, staged, future] {
    job->finish();
    staged->complete(*future);
  };
  starter_.push([this, job, future, start, finish] {
    if (!succeeds(future, start)) return;
    finisher_.push([job, future, finish] {
      if (!succeeds(future, finish)) return;
      // A peer that goes away now is found by whoever waits for it next.
      (void)succeeds(future, [&] { job->wait_sent(); });
    });
  });
  return future;
}

std::optional<double> CodedReduction::take_cosine() {
  if (!std::exchange(is_checked_, false)) return std::nullopt;
  return cosine_.product / std::sqrt(cosine_.applied * cosine_.exact);
}

std::unique_ptr<c10d::CommHookInterface> hook_of(std::shared_ptr<CodedReduction> reduction) {
  return std::make_unique<Hook>(std::move(reduction));
}

}  // namespace tj::trainer
