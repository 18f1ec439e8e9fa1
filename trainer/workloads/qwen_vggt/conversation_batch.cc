// Shapes: B samples, T tokens, P patches, G pictures, S frames.
#include "trainer/workloads/qwen_vggt/conversation_batch.h"

#include <torch/types.h>

#include <algorithm>
#include <span>

#include "contract/result.h"
#include "trainer/workloads/qwen_vggt/chat.h"
#include "trainer/workloads/qwen_vggt/conversation_data.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kAxes = 3;
constexpr float kPixelMax = 255;

/// A row of a contiguous int32 tensor in the host's memory.
std::span<const std::int32_t> row_of(const at::Tensor& tensor, std::int64_t row) {
  const auto size = tensor.numel() / std::max<std::int64_t>(1, tensor.size(0));
  return {tensor.const_data_ptr<std::int32_t>() + row * size, static_cast<std::size_t>(size)};
}

/// What of a batch decides how the rest is computed, in the host's memory.
struct Facts {
  at::Tensor tokens, positions, labels, grids, hashes;
  std::int64_t patches_of_row = 0;  // that the batch has room for

  explicit Facts(const Batch& batch)
      : tokens(batch[kConversationTokens].to(at::kCPU).contiguous()),
        positions(batch[kConversationPositions].to(at::kCPU).contiguous()),
        labels(batch[kConversationLabels].to(at::kCPU).contiguous()),
        grids(batch[kConversationGrids].to(at::kCPU).contiguous()),
        hashes(batch[kConversationFrameHashes].to(at::kCPU).contiguous()),
        patches_of_row(batch[kConversationPatches].size(1)) {}

  std::int64_t rows() const { return tokens.size(0); }

  /// Tokens of a row without its padding: of them the first alone stands at 0 on all axes.
  std::int64_t length(std::int64_t row) const {
    const auto all = row_of(positions, row);
    const auto columns = tokens.size(1);
    std::int64_t length = std::min<std::int64_t>(1, columns);
    for (std::int64_t axis = 0; axis < kAxes; ++axis)
      for (auto at = columns; at > length; --at)
        if (all[static_cast<std::size_t>(axis * columns + at - 1)] != 0) {
          length = at;
          break;
        }
    return length;
  }
};

struct Picture {
  VisionGrid grid;
  bool is_video = false;
};

std::vector<Picture> pictures_of(const Facts& facts, std::int64_t row) {
  constexpr std::size_t kNumbers = 4;
  const auto numbers = row_of(facts.grids, row);
  std::vector<Picture> pictures;
  for (std::size_t at = 0; at + kNumbers <= numbers.size() && numbers[at] > 0; at += kNumbers)
    pictures.push_back(
        {.grid = {.frames = numbers[at], .rows = numbers[at + 1], .columns = numbers[at + 2]},
         .is_video = numbers[at + 3] != 0});
  return pictures;
}

/// As one number each; those that are there.
std::vector<std::int64_t> hashes_of(const Facts& facts, std::int64_t row) {
  const auto halves = row_of(facts.hashes, row);
  std::vector<std::int64_t> hashes;
  for (std::size_t at = 0; at + 1 < halves.size(); at += 2) {
    const auto high = static_cast<std::uint64_t>(static_cast<std::uint32_t>(halves[at]));
    const auto hash = high << 32 | static_cast<std::uint32_t>(halves[at + 1]);
    if (hash == 0) break;
    hashes.push_back(static_cast<std::int64_t>(hash));
  }
  return hashes;
}

/// Goes through the rows on the host, and says what is to be taken of the device's tensors.
class BatchPlan {
 public:
  BatchPlan(const Facts& facts, const QwenConfig& config) : facts_(facts), config_(config) {
    for (std::int64_t row = 0; row < facts.rows(); ++row)
      columns_ = std::max(columns_, facts.length(row));
    for (std::int64_t row = 0; row < facts.rows(); ++row) add(row);
  }

  ConversationBatch of(const Batch& batch) const {
    const auto device = batch[kConversationTokens].device();
    const auto numbers = [&](const std::vector<std::int64_t>& values) {
      return torch::tensor(values, at::kLong).to(device);
    };
    const auto cut = [&](ConversationTensor which, std::int64_t axis) {
      return batch[which].narrow(axis, 0, columns_).to(at::kLong);
    };
    ConversationBatch made{
        .qwen = {.tokens = cut(kConversationTokens, 1),
                 .positions = cut(kConversationPositions, 2).transpose(0, 1).contiguous(),
                 .patches = {},
                 .grids = grids_,
                 .pads = numbers(pads_),
                 .judged = numbers(judged_),
                 .target_ids = numbers(target_ids_)},
        .answers = numbers(answers_),
        .answer_count = answer_count_,
        .samples = samples_};
    if (grids_.empty()) return made;
    made.qwen.patches = values(batch[kConversationPatches].flatten(0, 1), numbers(patch_rows_));
    for (std::size_t row = 0; row < samples_.size(); ++row)
      if (auto& scene = made.samples[row].scene)
        scene->frames = frames(batch[kConversationFrames], static_cast<std::int64_t>(row), *scene);
    return made;
  }

 private:
  void add(std::int64_t row) {
    const auto length = facts_.length(row);
    add_tokens(row_of(facts_.tokens, row).first(static_cast<std::size_t>(length)), row);
    add_targets(row_of(facts_.labels, row).first(static_cast<std::size_t>(length)), row);
    add_pictures(row);
  }

  void add_tokens(std::span<const std::int32_t> tokens, std::int64_t row) {
    for (std::size_t at = 0; at < tokens.size(); ++at)
      if (tokens[at] == config_.ids.image || tokens[at] == config_.ids.video)
        pads_.push_back(row * columns_ + static_cast<std::int64_t>(at));
  }

  void add_targets(std::span<const std::int32_t> labels, std::int64_t row) {
    std::int64_t next = -1;  // place that would go on with the answer
    for (const auto& target : chat_targets(labels)) {
      if (target.place != next) ++answer_count_;
      next = target.place + 1;
      judged_.push_back(row * columns_ + target.place);
      target_ids_.push_back(target.id);
      answers_.push_back(answer_count_ - 1);
    }
  }

  void add_pictures(std::int64_t row) {
    const auto pictures = pictures_of(facts_, row);
    const auto merged = config_.vision.merge_side * config_.vision.merge_side;
    SamplePictures sample;
    auto hashes = hashes_of(facts_, row);
    const auto newest = std::find_if(pictures.rbegin(), pictures.rend(),
                                     [](const Picture& picture) { return !picture.is_video; });
    if (!hashes.empty() && newest != pictures.rend())
      sample.scene = {.frames = {}, .hashes = std::move(hashes), .grid = newest->grid};
    auto patch = row * facts_.patches_of_row;
    for (const auto& picture : pictures) {
      const auto tokens = picture.grid.patches() / merged;
      sample.pictures.push_back({.first_token = tokens_of_pictures_,
                                 .tokens = tokens,
                                 .is_like_newest = sample.scene && !picture.is_video &&
                                                   picture.grid == sample.scene->grid});
      tokens_of_pictures_ += tokens;
      for (std::int64_t i = 0; i < picture.grid.patches(); ++i) patch_rows_.push_back(patch++);
      grids_.push_back(picture.grid);
    }
    samples_.push_back(std::move(sample));
  }

  /// The tower's input, of rows of uint8 [B x P, values of a patch].
  at::Tensor values(const at::Tensor& pixels, const at::Tensor& rows) const {
    const ColourScale scale;
    const auto by_colour = [&](const std::array<float, kColours>& numbers) {
      return torch::tensor(at::ArrayRef<float>(numbers.data(), numbers.size()))
          .view({kColours, 1})
          .to(pixels.device());
    };
    auto chosen = pixels.index_select(0, rows).to(at::kFloat).unflatten(1, {kColours, -1});
    // In place: it is the largest input, and made anew.
    chosen.div_(kPixelMax).sub_(by_colour(scale.mean)).div_(by_colour(scale.deviation));
    return chosen.flatten(1);
  }

  at::Tensor frames(const at::Tensor& all, std::int64_t row, const SceneFrames& scene) const {
    const auto side = config_.vision.patch_side;
    return all.select(0, row)
        .narrow(0, 0, static_cast<std::int64_t>(scene.hashes.size()))
        .narrow(2, 0, scene.grid.rows * side)
        .narrow(3, 0, scene.grid.columns * side);
  }

  const Facts& facts_;
  const QwenConfig& config_;
  std::int64_t columns_ = 0;
  std::int64_t tokens_of_pictures_ = 0;
  std::int64_t answer_count_ = 0;
  std::vector<VisionGrid> grids_;
  std::vector<SamplePictures> samples_;
  std::vector<std::int64_t> pads_, judged_, target_ids_, answers_, patch_rows_;
};

}  // namespace

ConversationBatch conversation_batch(const Batch& tensors, const QwenConfig& config) {
  TJ_CHECK(tensors.size() == kConversationTensors, "all that a conversation has");
  const Facts facts(tensors);
  return BatchPlan(facts, config).of(tensors);
}

}  // namespace tj::trainer
