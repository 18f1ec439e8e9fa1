#include "trainer/workloads/pi0/pi0_batch.h"

#include <torch/types.h>

#include "contract/result.h"

namespace tj::trainer {
namespace {

constexpr float kHalfOfBytes = 127.5F;

at::Tensor in_unit_range(const at::Tensor& images) {
  if (images.scalar_type() != at::kByte) return images;
  return images.to(at::kFloat) / kHalfOfBytes - 1;
}

std::int64_t bytes_of(HostTensor::Type type) { return type == HostTensor::Type::uint8 ? 1 : 4; }

}  // namespace

Pi0Batch pi0_batch(const Batch& tensors) {
  TJ_CHECK(tensors.size() == kPi0Inputs, "all that a pi0 sees");
  const auto read = [&](Pi0Input input) -> const at::Tensor& {
    return tensors[static_cast<std::size_t>(input)];
  };
  return {.observation = {.images = in_unit_range(read(Pi0Input::images)),
                          .image_mask = read(Pi0Input::image_mask).ne(0),
                          .tokens = read(Pi0Input::tokens).to(at::kLong),
                          .token_mask = read(Pi0Input::token_mask).ne(0),
                          .state = read(Pi0Input::state)},
          .actions = read(Pi0Input::actions),
          .numbers = read(Pi0Input::numbers).to(at::kLong),
          .action_pad = read(Pi0Input::action_pad).ne(0)};
}

std::vector<MadeUpTensor> pi0_made_up(const Pi0Config& config) {
  using enum HostTensor::Type;
  const auto cameras = static_cast<std::int64_t>(config.cameras.size());
  const auto side = config.vision.image_side;
  constexpr std::int64_t kNumbers = 1 << 20;
  return {{.type = uint8, .shape = {cameras, kPi0ImageChannels, side, side}},
          {.type = uint8, .shape = {cameras}, .below = 2},
          {.type = int32, .shape = {config.prompt_tokens}, .below = config.vocabulary},
          {.type = uint8, .shape = {config.prompt_tokens}, .below = 2},
          {.type = float32, .shape = {config.state_width}},
          {.type = float32, .shape = {config.horizon, config.action_width}},
          {.type = int32, .shape = {}, .below = kNumbers},
          {.type = uint8, .shape = {config.horizon}, .below = 2}};
}

std::int64_t pi0_bytes_of_sample(const Pi0Config& config) {
  std::int64_t bytes = 0;
  for (const auto& tensor : pi0_made_up(config))
    bytes += element_count(tensor.shape) * bytes_of(tensor.type);
  return bytes;
}

}  // namespace tj::trainer
