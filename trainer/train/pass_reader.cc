#include "trainer/train/pass_reader.h"

#include <torch/torch.h>

#include "trainer/values/failure.h"

namespace tj::trainer {

PassReader::PassReader(const TokenSource& source, const TrainPlan& plan, int rank,
                       std::int64_t next_sample, PhaseClock& clock)
    : plan_(plan),
      clock_(clock),
      batches_(
          source,
          {.space = sample_space(plan, source.token_count()),
           .share = {.micro_batch = plan.micro_batch, .passes = plan.accumulation, .rank = rank},
           .batch_size = plan.batch_size,
           .next_sample = next_sample},
          plan.data_threads) {}

Pass PassReader::next() {
  const auto timed = clock_.time(Section::data);
  auto batch = batches_.next();
  if (!batch) throw BadDataError(batch.error());
  const auto tokens = torch::from_blob(batch->tokens.data(),
                                       {plan_.micro_batch, plan_.model.context + 1}, torch::kInt32);
  const auto device = plan_.gpu ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(*plan_.gpu))
                                : at::Device(at::kCPU);
  return {.tokens = tokens.to(device, torch::kInt64), .first_sample = batch->first_sample};
}

}  // namespace tj::trainer
