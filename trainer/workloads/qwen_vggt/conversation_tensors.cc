#include "trainer/workloads/qwen_vggt/conversation_tensors.h"

#include <algorithm>
#include <cstring>

#include "trainer/values/flat_layout.h"

namespace tj::trainer {
namespace {

/// The largest of a batch; each may be 0.
struct Extents {
  std::int64_t tokens = 0;
  std::int64_t patches = 0;
  std::int64_t grids = 0;
  std::int64_t frames = 0;
  PictureSides sides;
};

Extents extents_of(std::span<const EncodedConversation> samples, const PatchRule& rule) {
  Extents most;
  const auto raise = [](std::int64_t& extent, std::size_t size) {
    extent = std::max(extent, static_cast<std::int64_t>(size));
  };
  for (const auto& sample : samples) {
    raise(most.tokens, sample.tokens.ids.size());
    raise(most.patches, sample.patches.size() / static_cast<std::size_t>(rule.values_of_patch()));
    raise(most.grids, sample.vision.size());
    raise(most.frames, sample.frames.size());
    most.sides.height = std::max(most.sides.height, sample.frame_sides.height);
    most.sides.width = std::max(most.sides.width, sample.frame_sides.width);
  }
  return most;
}

HostTensor zeros(HostTensor::Type type, std::vector<std::int64_t> shape) {
  HostTensor tensor{.type = type, .shape = std::move(shape), .bytes = {}};
  const auto bytes = element_count(tensor.shape) * (type == HostTensor::Type::uint8 ? 1 : 4);
  tensor.bytes.resize(static_cast<std::size_t>(bytes));
  return tensor;
}

/// The part of one sample.
template <typename Value>
std::span<Value> row_of(HostTensor& tensor, std::size_t row) {
  const auto bytes = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape.front());
  return {reinterpret_cast<Value*>(tensor.bytes.data() + row * bytes), bytes / sizeof(Value)};
}

std::vector<HostTensor> room_for(std::int64_t samples, const Extents& most, const PatchRule& rule) {
  using enum HostTensor::Type;
  std::vector<HostTensor> tensors(kConversationTensors);
  tensors[kConversationTokens] = zeros(int32, {samples, most.tokens});
  tensors[kConversationPositions] = zeros(int32, {samples, 3, most.tokens});
  tensors[kConversationLabels] = zeros(int32, {samples, most.tokens});
  tensors[kConversationPatches] = zeros(uint8, {samples, most.patches, rule.values_of_patch()});
  tensors[kConversationGrids] = zeros(int32, {samples, most.grids, 4});
  tensors[kConversationFrames] =
      zeros(uint8, {samples, most.frames, kColours, most.sides.height, most.sides.width});
  tensors[kConversationFrameHashes] = zeros(int32, {samples, most.frames, 2});
  tensors[kConversationNumbers] = zeros(int32, {samples});
  return tensors;
}

class BatchFiller {
 public:
  BatchFiller(std::vector<HostTensor>& tensors, const Extents& most)
      : tensors_(tensors), most_(most) {}

  void add(const EncodedConversation& sample, std::int64_t number) {
    add_tokens(sample);
    const auto patches = row_of<std::uint8_t>(tensors_[kConversationPatches], row_);
    std::ranges::copy(sample.patches, patches.begin());
    const auto grids = row_of<std::int32_t>(tensors_[kConversationGrids], row_);
    for (std::size_t i = 0; i < sample.vision.size(); ++i) {
      const auto& input = sample.vision[i];
      const std::int64_t numbers[] = {input.grid.frames, input.grid.rows, input.grid.columns,
                                      input.is_video ? 1 : 0};
      for (std::size_t at = 0; at < 4; ++at)
        grids[4 * i + at] = static_cast<std::int32_t>(numbers[at]);
    }
    for (std::size_t i = 0; i < sample.frames.size(); ++i) add_frame(sample, i);
    row_of<std::int32_t>(tensors_[kConversationNumbers], row_)[0] =
        static_cast<std::int32_t>(number);
    ++row_;
  }

 private:
  void add_tokens(const EncodedConversation& sample) {
    std::ranges::copy(sample.tokens.ids,
                      row_of<std::int32_t>(tensors_[kConversationTokens], row_).begin());
    const auto labels = row_of<std::int32_t>(tensors_[kConversationLabels], row_);
    std::ranges::fill(labels, kNoLabel);
    std::ranges::copy(sample.tokens.labels, labels.begin());
    const auto positions = row_of<std::int32_t>(tensors_[kConversationPositions], row_);
    for (std::size_t axis = 0; axis < sample.positions.axes.size(); ++axis)
      std::ranges::transform(sample.positions.axes[axis],
                             positions.begin() + static_cast<std::ptrdiff_t>(axis) * most_.tokens,
                             [](auto place) { return static_cast<std::int32_t>(place); });
  }

  void add_frame(const EncodedConversation& sample, std::size_t index) {
    const auto& sides = sample.frame_sides;
    const auto plane = most_.sides.height * most_.sides.width;
    const auto frames = row_of<std::uint8_t>(tensors_[kConversationFrames], row_);
    const auto first = static_cast<std::int64_t>(index) * kColours * plane;
    auto from = sample.frames[index].begin();
    for (std::int64_t colour = 0; colour < kColours; ++colour)
      for (std::int64_t y = 0; y < sides.height; ++y, from += sides.width)
        std::copy_n(from, sides.width,
                    frames.begin() + first + colour * plane + y * most_.sides.width);
    const auto hash = sample.frame_hashes[index];
    const auto halves = row_of<std::int32_t>(tensors_[kConversationFrameHashes], row_);
    halves[2 * index] = static_cast<std::int32_t>(hash >> 32);
    halves[2 * index + 1] = static_cast<std::int32_t>(hash & UINT32_MAX);
  }

  std::vector<HostTensor>& tensors_;
  const Extents& most_;
  std::size_t row_ = 0;
};

}  // namespace

SampleBatch conversation_batch(std::span<const EncodedConversation> samples,
                               std::span<const std::int64_t> numbers, const PatchRule& rule) {
  const auto most = extents_of(samples, rule);
  SampleBatch batch{.tensors = room_for(static_cast<std::int64_t>(samples.size()), most, rule)};
  BatchFiller filler(batch.tensors, most);
  for (std::size_t row = 0; row < samples.size(); ++row) {
    filler.add(samples[row], numbers[row]);
    batch.weight += samples[row].tokens.learned();
  }
  return batch;
}

}  // namespace tj::trainer
