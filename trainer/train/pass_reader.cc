#include "trainer/train/pass_reader.h"

#include <torch/torch.h>

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
    : plan_(plan),
      clock_(clock),
      batches_(
          source,
          {.seed = plan.seed,
           .share = {.micro_batch = plan.micro_batch, .passes = plan.accumulation, .rank = rank},
           .batch_size = plan.batch_size,
           .next_sample = next_sample},
          plan.data_threads) {}

Pass PassReader::next() {
  const auto timed = clock_.time(Section::data);
  auto batch = batches_.next();
  if (!batch) throw BadDataError(batch.error());
  const auto device = device_of(plan_.gpu);
  Pass pass{.batch = {}, .first_sample = batch->first_sample, .weight = batch->weight};
  for (auto& tensor : batch->tensors) {
    auto on_host = tensor_of(std::move(tensor));
    // From pinned memory the copy needs nobody to wait for it.
    if (device.is_cuda()) on_host = on_host.pin_memory();
    pass.batch.push_back(on_host.to(device, /*non_blocking=*/device.is_cuda()));
  }
  return pass;
}

}  // namespace tj::trainer
