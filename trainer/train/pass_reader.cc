#include "trainer/train/pass_reader.h"

#include <torch/types.h>

#include <c10/core/StreamGuard.h>

#include <utility>

#include "trainer/values/device_stream.h"
#include "trainer/values/failure.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {

at::ScalarType type_of(HostTensor::Type type) {
  switch (type) {
    case HostTensor::Type::uint8: return at::kByte;
    case HostTensor::Type::int32: return at::kInt;
    case HostTensor::Type::float32: return at::kFloat;
  }
  TORCH_CHECK(false, "a host tensor of a type without a name");
}

/// Takes the memory over.
at::Tensor tensor_of(HostTensor host) {
  auto* const owner = new HostTensor(std::move(host));
  return torch::from_blob(
      owner->bytes.data(), owner->shape, [owner](void*) { delete owner; }, type_of(owner->type));
}

}  // namespace

PassReader::PassReader(const SampleSource& source, const TrainPlan& plan, int rank,
                       std::int64_t next_sample, PhaseClock& clock)
    : clock_(clock),
      device_(device_of(plan.gpu)),
      stream_(device_.is_cpu() ? std::nullopt : std::optional(side_stream(device_))),
      batches_(
          source,
          {.seed = plan.seed,
           .share = {.micro_batch = plan.micro_batch, .passes = plan.accumulation, .rank = rank},
           .batch_size = plan.batch_size,
           .next_sample = next_sample},
          plan.data_threads) {}

PassReader::OnItsWay PassReader::send(Result<HostBatch> batch) const {
  if (!batch) return {.pass = batch.error(), .arrived = {}};
  Pass pass{.batch = {}, .first_sample = batch->first_sample, .weight = batch->weight};
  for (auto& tensor : batch->tensors) pass.batch.push_back(tensor_of(std::move(tensor)));
  if (!stream_) return {.pass = std::move(pass), .arrived = {}};
  const c10::StreamGuard in_own_stream(*stream_);
  // From pinned memory the copy needs nobody to wait for it.
  for (auto& tensor : pass.batch) tensor = tensor.pin_memory().to(device_, /*non_blocking=*/true);
  return {.pass = std::move(pass), .arrived = event_in(*stream_)};
}

Pass PassReader::arrived(OnItsWay sent) const {
  if (!sent.pass) throw BadDataError(sent.pass.error());
  if (!sent.arrived) return std::move(*sent.pass);
  const auto training = current_stream(device_);
  sent.arrived->block(training);
  // Its memory was taken for the other stream: it must not be given out again before this one is
  // done with it.
  for (const auto& tensor : sent.pass->batch) tensor.record_stream(training);
  return std::move(*sent.pass);
}

Pass PassReader::next() {
  const auto timed = clock_.time(Section::data);
  auto sent = ahead_ ? *std::exchange(ahead_, std::nullopt) : send(batches_.next());
  auto pass = arrived(std::move(sent));
  if (!stream_) return pass;
  if (auto ready = batches_.next_if_ready()) ahead_.emplace(send(std::move(*ready)));
  return pass;
}

}  // namespace tj::trainer
