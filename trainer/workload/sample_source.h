// What a workload trains on: samples by number. In which order, by which rank and how often they
// are taken is the engine's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/values/data_mark.h"

namespace tj::trainer {

/// One tensor in the host's memory, row by row.
struct HostTensor {
  enum class Type { uint8, int32, float32 };
  Type type = Type::float32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

struct Sample {
  std::int64_t index = 0;  // below the source's sample_count()
  // Random, and the same for all samples of an epoch: for a source that cuts them anew in each.
  std::uint64_t epoch_key = 0;
};

/// Samples that were read together: their number is the first extent of each tensor.
struct SampleBatch {
  std::vector<HostTensor> tensors;
  /// How much in it counts for the loss (targets, pixels, actions): what the sums over all ranks
  /// and passes of a step are divided by.
  std::int64_t weight = 0;
};

class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual std::int64_t sample_count() const = 0;

  /// A pure function of its argument, which any thread may call. Fails with Code::invalid for
  /// damaged data, with another code where another attempt may read it; the error names the file
  /// and the place in it.
  virtual Result<SampleBatch> read(std::span<const Sample> samples) const = 0;

  /// Changes when samples are others or have other numbers than before.
  virtual DataMark mark() const = 0;
  /// For people: "24,000 tokens in 3 files".
  virtual std::string description() const = 0;
};

}  // namespace tj::trainer
