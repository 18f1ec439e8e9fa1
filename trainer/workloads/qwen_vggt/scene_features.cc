#include "trainer/workloads/qwen_vggt/scene_features.h"

#include <torch/types.h>

#include <map>
#include <tuple>
#include <utility>

namespace tj::trainer {
namespace {

constexpr float kPixelMax = 255;

}  // namespace

SceneFeatures::SceneFeatures(std::unique_ptr<Vggt> vggt, FrameSight sight,
                             std::int64_t cache_bytes_max)
    : vggt_(std::move(vggt)), sight_(sight), bytes_max_(cache_bytes_max) {}

/// [1, patches, width] of one frame.
at::Tensor SceneFeatures::patches_of(const SceneFrames& scene, std::int64_t index) {
  const auto hash = scene.hashes[static_cast<std::size_t>(index)];
  if (const auto found = by_hash_.find(hash); found != by_hash_.end()) {
    ++known_;
    kept_.splice(kept_.begin(), kept_, found->second);
    return found->second->patches;
  }
  ++seen_;
  const auto pixels = scene.frames.narrow(0, index, 1).to(at::kFloat) / kPixelMax;
  auto patches = vggt_->patches(pixels);
  keep(hash, patches);
  return patches;
}

void SceneFeatures::keep(std::int64_t hash, const at::Tensor& patches) {
  const auto bytes = static_cast<std::int64_t>(patches.nbytes());
  if (bytes > bytes_max_) return;
  kept_.push_front({.hash = hash, .patches = patches});
  by_hash_[hash] = kept_.begin();
  bytes_ += bytes;
  while (bytes_ > bytes_max_) {
    bytes_ -= static_cast<std::int64_t>(kept_.back().patches.nbytes());
    by_hash_.erase(kept_.back().hash);
    kept_.pop_back();
  }
}

/// [1, S, patches, width]
at::Tensor SceneFeatures::patches_of(const SceneFrames& scene) {
  std::vector<at::Tensor> frames;
  for (std::int64_t index = 0; index < static_cast<std::int64_t>(scene.hashes.size()); ++index)
    frames.push_back(patches_of(scene, index));
  return at::cat(frames).unsqueeze(0);
}

std::vector<at::Tensor> SceneFeatures::newest(std::span<const SceneFrames* const> scenes) {
  const at::NoGradGuard no_gradients;
  // Scenes of as many frames of one size attend in one call.
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, std::vector<std::size_t>> alike;
  for (std::size_t scene = 0; scene < scenes.size(); ++scene)
    alike[{scenes[scene]->hashes.size(), scenes[scene]->grid.rows, scenes[scene]->grid.columns}]
        .push_back(scene);
  std::vector<at::Tensor> features(scenes.size());
  for (const auto& [extents, members] : alike) {
    std::vector<at::Tensor> patches;
    for (const auto member : members) patches.push_back(patches_of(*scenes[member]));
    const auto made = vggt_->newest_of(at::cat(patches), std::get<1>(extents), sight_);
    for (std::size_t i = 0; i < members.size(); ++i)
      features[members[i]] = made.select(0, static_cast<std::int64_t>(i));
  }
  return features;
}

}  // namespace tj::trainer
