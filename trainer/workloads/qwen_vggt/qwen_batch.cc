#include "trainer/workloads/qwen_vggt/qwen_batch.h"

#include <torch/types.h>

#include <algorithm>
#include <string>

namespace tj::trainer {
namespace {

/// Fills the batch sample by sample, on the host.
class BatchWriter {
 public:
  BatchWriter(std::int64_t rows, std::int64_t columns)
      : columns_(columns),
        tokens_(torch::zeros({rows, columns}, at::kLong)),
        positions_(torch::zeros({3, rows, columns}, at::kLong)) {}

  void add(const QwenSample& sample, const MropePositions& positions, const VisionIds& ids) {
    const auto count = static_cast<std::int64_t>(sample.tokens.ids.size());
    const auto own = torch::tensor(sample.tokens.ids, at::kLong);
    tokens_.select(0, row_).narrow(0, 0, count).copy_(own);
    for (std::int64_t axis = 0; axis < positions_.size(0); ++axis)
      positions_.select(0, axis)
          .select(0, row_)
          .narrow(0, 0, count)
          .copy_(torch::tensor(positions.axes[static_cast<std::size_t>(axis)], at::kLong));
    const auto first = row_ * columns_;
    for (std::int64_t at = 0; at < count; ++at) {
      const auto id = sample.tokens.ids[static_cast<std::size_t>(at)];
      if (id == ids.image || id == ids.video) pads_.push_back(first + at);
    }
    for (const auto& target : chat_targets(sample.tokens.labels)) {
      judged_.push_back(first + target.place);
      target_ids_.push_back(target.id);
    }
    for (const auto& input : sample.vision) grids_.push_back(input.grid);
    patches_.insert(patches_.end(), sample.patches.begin(), sample.patches.end());
    ++row_;
  }

  QwenBatch on(at::Device device) const {
    const auto numbers = [&](const std::vector<std::int64_t>& of) {
      return torch::tensor(of, at::kLong).to(device);
    };
    QwenBatch batch{.tokens = tokens_.to(device),
                    .positions = positions_.to(device),
                    .patches = {},
                    .grids = grids_,
                    .pads = numbers(pads_),
                    .judged = numbers(judged_),
                    .target_ids = numbers(target_ids_)};
    if (grids_.empty()) return batch;
    std::int64_t patch_count = 0;
    for (const auto& grid : grids_) patch_count += grid.patches();
    batch.patches = torch::tensor(patches_).view({patch_count, -1}).to(device);
    return batch;
  }

 private:
  std::int64_t columns_;
  std::int64_t row_ = 0;
  at::Tensor tokens_, positions_;
  std::vector<VisionGrid> grids_;
  std::vector<float> patches_;
  std::vector<std::int64_t> pads_, judged_, target_ids_;
};

}  // namespace

Result<QwenBatch> qwen_batch(std::span<const QwenSample> samples, const MropeRule& rule,
                             at::Device device) {
  std::size_t longest = 0;
  for (const auto& sample : samples) longest = std::max(longest, sample.tokens.ids.size());
  BatchWriter writer(static_cast<std::int64_t>(samples.size()), static_cast<std::int64_t>(longest));
  for (std::size_t row = 0; row < samples.size(); ++row) {
    const auto positions = mrope_positions(samples[row].tokens.ids, samples[row].vision, rule);
    if (!positions) {
      auto error = positions.error();
      error.subject = "sample " + std::to_string(row) + " of the batch: " + error.subject;
      return error;
    }
    writer.add(samples[row], *positions, rule.ids);
  }
  return writer.on(device);
}

}  // namespace tj::trainer
