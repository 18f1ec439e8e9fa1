#include "trainer/workloads/pi0/robot_samples.h"

#include <cstring>

#include "trainer/process/durable_file.h"
#include "trainer/values/counter_random.h"
#include "trainer/values/flat_layout.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kChannels = 3;

/// The part of one sample.
template <typename Value>
std::span<Value> row_of(HostTensor& tensor, std::size_t row) {
  const auto bytes = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape.front());
  return {reinterpret_cast<Value*>(tensor.bytes.data() + row * bytes), bytes / sizeof(Value)};
}

std::uint64_t key_of(const Sample& sample) {
  return mixed(sample.epoch_key ^ mixed(static_cast<std::uint64_t>(sample.index) + 1));
}

}  // namespace

std::vector<HostTensor> robot_tensors(const RobotFramesOptions& options, std::int64_t samples) {
  using enum HostTensor::Type;
  std::vector<HostTensor> tensors;
  const auto add = [&](HostTensor::Type type, std::vector<std::int64_t> shape) {
    const auto bytes = element_count(shape) * (type == uint8 ? 1 : 4);
    tensors.push_back({.type = type, .shape = std::move(shape), .bytes = {}});
    tensors.back().bytes.resize(static_cast<std::size_t>(bytes));
  };
  const auto cameras = static_cast<std::int64_t>(options.cameras.size());
  add(uint8, {samples, cameras, kChannels, options.picture.height, options.picture.width});
  add(uint8, {samples, cameras});
  add(int32, {samples, options.prompt.length});
  add(uint8, {samples, options.prompt.length});
  add(float32, {samples, options.state_width});
  add(float32, {samples, options.horizon, options.action_width});
  add(int32, {samples});
  add(uint8, {samples, options.horizon});
  return tensors;
}

RobotFramePlace place_in(std::vector<HostTensor>& tensors, std::size_t row) {
  return {.images = row_of<std::byte>(tensors[0], row),
          .image_mask = row_of<std::byte>(tensors[1], row),
          .tokens = row_of<std::int32_t>(tensors[2], row),
          .token_mask = row_of<std::byte>(tensors[3], row),
          .state = row_of<float>(tensors[4], row),
          .actions = row_of<float>(tensors[5], row),
          .action_pad = row_of<std::byte>(tensors[7], row)};
}

Result<SampleBatch> RobotSamples::read(std::span<const Sample> samples) const {
  const auto& options = frames_->options();
  const auto count = static_cast<std::int64_t>(samples.size());
  SampleBatch batch{.tensors = robot_tensors(options, count),
                    .weight = count * options.horizon * frames_->set().action.width};
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const auto& sample = samples[row];
    const auto place = place_in(batch.tensors, row);
    if (const auto done = frames_->read(sample.index, key_of(sample), place); !done)
      return done.error();
    row_of<std::int32_t>(batch.tensors[6], row)[0] = static_cast<std::int32_t>(sample.index);
  }
  return batch;
}

DataMark RobotSamples::mark() const {
  const auto& options = frames_->options();
  Sha256 hash;
  const auto add = [&hash](const std::string& text) {
    const auto line = text + "\n";
    hash.update(std::as_bytes(std::span(line)));
  };
  add(frames_->set().fingerprint);
  add(digest_);
  for (const auto& slot : options.cameras) add(slot.name + "=" + slot.feature);
  for (const auto number : {options.picture.height, options.picture.width, options.horizon,
                            options.prompt.length, static_cast<std::int64_t>(options.prompt.kind),
                            static_cast<std::int64_t>(options.normalisation)})
    add(std::to_string(number));
  for (const bool is : options.is_delta) add(is ? "-" : "=");
  add(options.is_augmented ? "augmented" : "");
  for (const auto episode : options.episodes) add(std::to_string(episode));
  return {.unit = "frames", .count = frames_->count(), .digest = std::move(hash).hex()};
}

std::string RobotSamples::description() const {
  const auto episodes = static_cast<std::int64_t>(frames_->options().episodes.size());
  return grouped(frames_->count()) + " frames of " + grouped(episodes) +
         (episodes == 1 ? " episode" : " episodes") + " of " + frames_->set().text();
}

}  // namespace tj::trainer
