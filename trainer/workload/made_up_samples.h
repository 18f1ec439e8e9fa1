// Samples that nobody has: of the right shape, with values from a hash. For whoever wants to know
// what training costs before there is data.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/workload/sample_source.h"

namespace tj::trainer {

/// One tensor of a sample.
struct MadeUpTensor {
  HostTensor::Type type = HostTensor::Type::float32;
  std::vector<std::int64_t> shape;  // of one sample
  std::int64_t below = 256;         // integers are in [0, below); float32 in [0, 1)
};

class MadeUpSamples final : public SampleSource {
 public:
  /// `weight`: how much in one sample counts.
  MadeUpSamples(std::vector<MadeUpTensor> tensors, std::int64_t weight)
      : tensors_(std::move(tensors)), weight_(weight) {}

  std::int64_t sample_count() const override { return kCount; }
  Result<SampleBatch> read(std::span<const Sample> samples) const override;
  DataMark mark() const override { return {.unit = "samples", .count = kCount, .digest = ""}; }
  std::string description() const override { return "samples that are made up"; }

 private:
  static constexpr std::int64_t kCount = 1 << 20;
  std::vector<MadeUpTensor> tensors_;
  std::int64_t weight_;
};

}  // namespace tj::trainer
