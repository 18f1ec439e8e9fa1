// A stream of tokens as samples: sequences that tile it.
#pragma once
#include <cstdint>
#include <optional>

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
  /// `ignored_token`: as a target it doesn't count.
  TokenSamples(TokenSource source, std::int64_t sequence_tokens,
               std::optional<std::int64_t> ignored_token)
      : source_(std::move(source)),
        tiles_{.token_count = source_.token_count(), .sequence_tokens = sequence_tokens},
        ignored_token_(ignored_token) {}

  std::int64_t sample_count() const override { return tiles_.count(); }
  /// One tensor, int32 [samples, sequence_tokens + 1]; its weight is the number of targets.
  Result<SampleBatch> read(std::span<const Sample> samples) const override;
  DataMark mark() const override {
    return {.unit = "tokens", .count = source_.token_count(), .digest = ""};
  }
  std::string description() const override;

 private:
  TokenSource source_;
  TokenTiles tiles_;
  std::optional<std::int64_t> ignored_token_;
};

}  // namespace tj::trainer
