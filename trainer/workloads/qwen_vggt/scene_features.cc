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
    : vggt_(std::move(vggt)), side_(vggt_->device()), sight_(sight), bytes_max_(cache_bytes_max) {}

SideWork::Begun SceneFeatures::begin(std::span<const SceneFrames* const> scenes) {
  std::vector<at::Tensor> frames;
  for (const auto* const scene : scenes) frames.push_back(scene->frames);
  return side_.begin(frames, [&] { return looked(scenes); });
}

/// Of all frames. Those that nobody knows are looked at together, layer by layer.
SceneFeatures::PatchesByHash SceneFeatures::look_at(std::span<const SceneFrames* const> scenes) {
  PatchesByHash patches;
  std::vector<std::int64_t> unknown;
  std::vector<at::Tensor> images;
  for (const auto* const scene : scenes) {
    for (std::size_t index = 0; index < scene->hashes.size(); ++index) {
      const auto hash = scene->hashes[index];
      if (!patches.try_emplace(hash).second) {
        ++known_;
      } else if (const auto found = by_hash_.find(hash); found != by_hash_.end()) {
        ++known_;
        kept_.splice(kept_.begin(), kept_, found->second);
        patches[hash] = found->second->patches;
      } else {
        ++seen_;
        unknown.push_back(hash);
        const auto frame = scene->frames.narrow(0, static_cast<std::int64_t>(index), 1);
        images.push_back(frame.to(at::kFloat) / kPixelMax);
      }
    }
  }
  const auto made = vggt_->patches(images);
  for (std::size_t i = 0; i < made.size(); ++i) {
    patches[unknown[i]] = made[i];
    keep(unknown[i], made[i]);
  }
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

std::vector<at::Tensor> SceneFeatures::looked(std::span<const SceneFrames* const> scenes) {
  const at::NoGradGuard no_gradients;
  const auto patches = look_at(scenes);
  // Scenes of as many frames of one size attend in one call.
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, std::vector<std::size_t>> alike;
  for (std::size_t scene = 0; scene < scenes.size(); ++scene)
    alike[{scenes[scene]->hashes.size(), scenes[scene]->grid.rows, scenes[scene]->grid.columns}]
        .push_back(scene);
  std::vector<VggtScenes> groups;
  for (const auto& [extents, members] : alike) {
    std::vector<at::Tensor> frames;
    for (const auto member : members)
      for (const auto hash : scenes[member]->hashes) frames.push_back(patches.at(hash));
    const auto scene_count = static_cast<std::int64_t>(members.size());
    groups.push_back(
        {.patches = at::cat(frames).unflatten(0, {scene_count, -1}), .rows = std::get<1>(extents)});
  }
  const auto made = vggt_->newest_of(groups, sight_);
  std::vector<at::Tensor> features(scenes.size());
  auto next = made.begin();
  for (const auto& [extents, members] : alike) {
    for (std::size_t i = 0; i < members.size(); ++i)
      features[members[i]] = next->select(0, static_cast<std::int64_t>(i));
    ++next;
  }
  return features;
}

}  // namespace tj::trainer
