// Weights of a Qwen2.5-VL and of its VGGT, as a training and what comes after it take them: from
// files, or random. Includes torch.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "contract/result.h"
#include "trainer/workloads/qwen_vggt/qwen_vggt.h"

namespace tj::trainer {

/// What a VGGT takes of a device for longer than a pass.
struct SceneRoom {
  std::int64_t cache_bytes_max = 0;  // of frames that come again
  Communicator* ranks = nullptr;     // among whom its layers are shared out; null: they are not
};
/// The VGGT of a coupling. Fails as open_vggt().
Result<std::unique_ptr<SceneFeatures>> open_scene_features(const Coupling& coupling,
                                                           const ModelOptions& options,
                                                           const SceneRoom& room);

/// Of `config`, from a folder as transformers saves it, a checkpoint or a .safetensors file. Where
/// it has no tensors of a coupling and the model does, these are what a training from scratch
/// begins with. Fails as open_qwen_weights(), and as check_patches() by the files beside it.
Result<TensorReader> open_qwen_vggt_weights(const std::filesystem::path& path,
                                            const QwenVggtConfig& config);

struct TrainedQwen {
  std::filesystem::path weights;  // a file, or a folder: of a training its newest checkpoint
  QwenVggtConfig config;
  std::unique_ptr<QwenVggt> model;

  std::filesystem::path folder() const;
};

struct TrainedQwenRequest {
  std::filesystem::path from;
  std::string flag = "--from";  // with which it was named: all messages say it
  /// As --vggt says; absent: what config.json beside the weights says.
  std::optional<std::string> vggt;
  std::string vggt_flag = "--vggt";
  ModelOptions options;
};

/// Newer checkpoints that are damaged are told. Fails with Code::invalid, in the flags' words.
Result<TrainedQwen> open_trained_qwen(const TrainedQwenRequest& request);

/// What --vggt names: "off", "random" or a file. Absent: off.
Result<std::optional<Coupling>> with_vggt(const std::string& named, Coupling coupling);

}  // namespace tj::trainer
