// Samples of which the right actions are known: an image of one colour, a state and a word, each of
// which says one value of all actions of the chunk.
#pragma once
#include <cstring>
#include <span>
#include <vector>

#include "trainer/values/counter_random.h"
#include "trainer/workload/sample_source.h"
#include "trainer/workloads/pi0/pi0_batch.h"

namespace tj::trainer {

/// Of a sample, by its number.
struct ColourSample {
  std::uint8_t colour = 0;
  float state = 0;        // from -1 to 1
  std::int32_t word = 0;  // 1 or 2

  static ColourSample of(std::int64_t number) {
    const auto word = mixed(static_cast<std::uint64_t>(number));
    return {.colour = static_cast<std::uint8_t>(word),
            .state = static_cast<float>((word >> 8) % 2001) / 1000 - 1,
            .word = static_cast<std::int32_t>(1 + (word >> 32) % 2)};
  }
  /// Value `index` of each action; those behind the third are 0.
  float action(std::int64_t index) const {
    if (index == 0) return static_cast<float>(colour) / 127.5F - 1;
    if (index == 1) return state;
    return index == 2 ? static_cast<float>(2 * word - 3) : 0;
  }
};

/// The first camera sees the colour, the others see nothing.
class ColourSamples final : public SampleSource {
 public:
  ColourSamples(Pi0Config config, std::int64_t count) : config_(std::move(config)), count_(count) {}

  std::int64_t sample_count() const override { return count_; }
  DataMark mark() const override { return {.unit = "samples", .count = count_, .digest = ""}; }
  std::string description() const override { return std::to_string(count_) + " samples"; }

  Result<SampleBatch> read(std::span<const Sample> samples) const override {
    const auto count = static_cast<std::int64_t>(samples.size());
    SampleBatch batch{.tensors = {}, .weight = count * config_.values_of_chunk()};
    for (const auto& tensor : pi0_made_up(config_)) {
      HostTensor made{.type = tensor.type, .shape = tensor.shape, .bytes = {}};
      made.shape.insert(made.shape.begin(), count);
      const auto bytes =
          element_count(made.shape) * (tensor.type == HostTensor::Type::uint8 ? 1 : 4);
      made.bytes.resize(static_cast<std::size_t>(bytes));
      batch.tensors.push_back(std::move(made));
    }
    for (std::size_t row = 0; row < samples.size(); ++row)
      write(batch.tensors, static_cast<std::int64_t>(row), samples[row].index);
    return batch;
  }

 private:
  template <typename Value>
  static void put(std::vector<HostTensor>& tensors, Pi0Input input, std::int64_t place,
                  Value value) {
    std::memcpy(tensors[static_cast<std::size_t>(input)].bytes.data() +
                    place * static_cast<std::int64_t>(sizeof value),
                &value, sizeof value);
  }

  void write(std::vector<HostTensor>& tensors, std::int64_t row, std::int64_t number) const {
    const auto sample = ColourSample::of(number);
    const auto cameras = static_cast<std::int64_t>(config_.cameras.size());
    const auto side = config_.vision.image_side;
    const auto pixels = kPi0ImageChannels * side * side;
    for (std::int64_t i = 0; i < pixels; ++i)
      put(tensors, Pi0Input::images, row * cameras * pixels + i, sample.colour);
    put<std::uint8_t>(tensors, Pi0Input::image_mask, row * cameras, 1);
    put(tensors, Pi0Input::tokens, row * config_.prompt_tokens, sample.word);
    put<std::uint8_t>(tensors, Pi0Input::token_mask, row * config_.prompt_tokens, 1);
    put(tensors, Pi0Input::state, row * config_.state_width, sample.state);
    const auto values = config_.action_width;
    for (std::int64_t step = 0; step < config_.horizon; ++step)
      for (std::int64_t index = 0; index < values; ++index)
        put(tensors, Pi0Input::actions, (row * config_.horizon + step) * values + index,
            sample.action(index));
    put(tensors, Pi0Input::numbers, row, static_cast<std::int32_t>(number));
  }

  Pi0Config config_;
  std::int64_t count_;
};

}  // namespace tj::trainer
