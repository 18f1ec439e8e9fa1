#include "trainer/workloads/gpt2/token_samples.h"

#include <algorithm>

#include "trainer/values/counter_random.h"
#include "trainer/values/settings.h"

namespace tj::trainer {

std::int64_t TokenTiles::count() const {
  return std::max<std::int64_t>(0, (token_count - 1) / sequence_tokens);
}

std::int64_t TokenTiles::offset(const Sample& sample) const {
  const std::int64_t spare = token_count - 1 - count() * sequence_tokens;
  const std::uint64_t shift = mixed(sample.epoch_key) % static_cast<std::uint64_t>(spare + 1);
  return static_cast<std::int64_t>(shift) + sample.index * sequence_tokens;
}

Result<SampleBatch> TokenSamples::read(std::span<const Sample> samples) const {
  const auto row_tokens = static_cast<std::size_t>(tiles_.sequence_tokens + 1);
  HostTensor tokens{
      .type = HostTensor::Type::int32,
      .shape = {static_cast<std::int64_t>(samples.size()), static_cast<std::int64_t>(row_tokens)},
      .bytes = {}};
  tokens.bytes.resize(samples.size() * row_tokens * sizeof(std::int32_t));
  auto* const rows = reinterpret_cast<std::int32_t*>(tokens.bytes.data());
  SampleBatch batch{.weight = static_cast<std::int64_t>(samples.size() * (row_tokens - 1))};
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const std::span place(rows + row * row_tokens, row_tokens);
    if (const auto done = source_.read(tiles_.offset(samples[row]), place); !done)
      return done.error();
    if (ignored_token_) batch.weight -= std::ranges::count(place.subspan(1), *ignored_token_);
  }
  batch.tensors.push_back(std::move(tokens));
  return batch;
}

std::string TokenSamples::description() const {
  return grouped(source_.token_count()) + " tokens in " + std::to_string(source_.file_count()) +
         (source_.file_count() == 1 ? " file" : " files");
}

}  // namespace tj::trainer
