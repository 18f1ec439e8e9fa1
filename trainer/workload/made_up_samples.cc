#include "trainer/workload/made_up_samples.h"

#include <cstring>

#include "trainer/values/counter_random.h"
#include "trainer/values/flat_layout.h"

namespace tj::trainer {
namespace {

template <typename Value, typename ValueOf>
void fill(std::vector<std::byte>& bytes, std::size_t count, const Sample& sample, ValueOf&& of) {
  const std::size_t begin = bytes.size();
  bytes.resize(begin + count * sizeof(Value));
  auto word = mixed(static_cast<std::uint64_t>(sample.index));
  for (std::size_t at = 0; at < count; ++at) {
    word = mixed(word + at);
    const Value value = of(word);
    std::memcpy(bytes.data() + begin + at * sizeof(Value), &value, sizeof value);
  }
}

HostTensor made_up(const MadeUpTensor& tensor, std::span<const Sample> samples) {
  HostTensor made{.type = tensor.type, .shape = tensor.shape, .bytes = {}};
  made.shape.insert(made.shape.begin(), static_cast<std::int64_t>(samples.size()));
  const auto count = static_cast<std::size_t>(element_count(tensor.shape));
  const auto below = static_cast<std::uint64_t>(tensor.below);
  for (const auto& sample : samples) {
    switch (tensor.type) {
      case HostTensor::Type::uint8:
        fill<std::uint8_t>(made.bytes, count, sample, [&](std::uint64_t word) {
          return static_cast<std::uint8_t>(word % below);
        });
        break;
      case HostTensor::Type::int32:
        fill<std::int32_t>(made.bytes, count, sample, [&](std::uint64_t word) {
          return static_cast<std::int32_t>(word % below);
        });
        break;
      case HostTensor::Type::float32:
        constexpr float kUnit = 1.0F / (1 << 24);
        fill<float>(made.bytes, count, sample,
                    [&](std::uint64_t word) { return static_cast<float>(word >> 40) * kUnit; });
        break;
    }
  }
  return made;
}

}  // namespace

Result<SampleBatch> MadeUpSamples::read(std::span<const Sample> samples) const {
  SampleBatch batch{.tensors = {}, .weight = weight_ * static_cast<std::int64_t>(samples.size())};
  for (const auto& tensor : tensors_) batch.tensors.push_back(made_up(tensor, samples));
  return batch;
}

}  // namespace tj::trainer
