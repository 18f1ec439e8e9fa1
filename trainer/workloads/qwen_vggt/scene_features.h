// What VGGT makes of the newest frame of each conversation. Frames that come again, as in the
// histories of one episode, are not looked at anew. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/workload/side_work.h"
#include "trainer/workloads/qwen_vggt/conversation_batch.h"
#include "trainer/workloads/qwen_vggt/vggt.h"

namespace tj::trainer {

class SceneFeatures {
 public:
  /// `cache_bytes_max`: of what DINOv2 has made of frames, kept on the device; the frames that were
  /// not seen for longest go first.
  SceneFeatures(std::unique_ptr<Vggt> vggt, FrameSight sight, std::int64_t cache_bytes_max);

  /// float32 [patches by rows, 2 x VGGT's width] of the newest frame of each scene; without
  /// gradients. A frame is looked at by itself: what it becomes depends on no other one, nor on
  /// what was kept. Collective where VGGT is shared out.
  std::vector<at::Tensor> newest(std::span<const SceneFrames* const> scenes) {
    return take(begin(scenes));
  }
  /// Then each rank calls newest() in each pass, also without scenes.
  bool is_shared_out() const { return vggt_->is_shared_out(); }

  // The same in two parts: a GPU looks in a stream of its own, and whoever takes it waits for it
  // there.
  SideWork::Begun begin(std::span<const SceneFrames* const> scenes);
  std::vector<at::Tensor> take(SideWork::Begun begun) const { return side_.take(std::move(begun)); }

  /// Frames that were looked at, and that were known.
  std::int64_t seen() const { return seen_; }
  std::int64_t known() const { return known_; }

 private:
  struct Kept {
    std::int64_t hash = 0;
    at::Tensor patches;  // float32 [1, patches, width]
  };
  using PatchesByHash = std::unordered_map<std::int64_t, at::Tensor>;  // [1, patches, width] each
  std::vector<at::Tensor> looked(std::span<const SceneFrames* const> scenes);
  PatchesByHash look_at(std::span<const SceneFrames* const> scenes);
  void keep(std::int64_t hash, const at::Tensor& patches);

  std::unique_ptr<Vggt> vggt_;
  SideWork side_;  // all that is kept is made and used there
  FrameSight sight_;
  std::int64_t bytes_max_;
  std::int64_t bytes_ = 0;
  std::int64_t seen_ = 0, known_ = 0;
  std::list<Kept> kept_;  // the newest first
  std::unordered_map<std::int64_t, std::list<Kept>::iterator> by_hash_;
};

}  // namespace tj::trainer
