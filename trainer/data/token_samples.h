// A stream of tokens as samples: sequences that tile it.
#pragma once
#include <cstdint>

#include "trainer/data/token_source.h"
#include "trainer/workload/sample_source.h"

namespace tj::trainer {

struct TokenTiles {
  std::int64_t token_count = 0;
  std::int64_t sequence_tokens = 0;  // inputs of one sample; it reads one more, the last target

  /// Samples that tile the tokens once; 0 when there are too few tokens for one.
  std::int64_t count() const;
  /// First token of the sample. The tiles leave a rest of tokens; where it lies changes with the
  /// epoch, so that all are seen.
  std::int64_t offset(const Sample& sample) const;
};

class TokenSamples final : public SampleSource {
 public:
  /// `source` outlives it.
  TokenSamples(const TokenSource& source, std::int64_t sequence_tokens)
      : source_(source),
        tiles_{.token_count = source.token_count(), .sequence_tokens = sequence_tokens} {}

  std::int64_t sample_count() const override { return tiles_.count(); }
  /// One tensor, int32 [samples, sequence_tokens + 1].
  Result<std::vector<HostTensor>> read(std::span<const Sample> samples) const override;

 private:
  const TokenSource& source_;
  TokenTiles tiles_;
};

}  // namespace tj::trainer
