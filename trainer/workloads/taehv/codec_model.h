// A trained TAEHV, for what comes after training: found by what a user names, with its weights.
// Includes torch.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "contract/result.h"
#include "trainer/workloads/taehv/taehv.h"

namespace tj::trainer {

struct CodecModel {
  std::string name;  // for --model
  TaehvConfig config;
  std::unique_ptr<Taehv> model;
};

struct CodecModelRequest {
  std::filesystem::path weights;    // a file, a checkpoint, or the --out of a training
  std::optional<std::string> name;  // for --model; absent: what stands beside the weights says
  ModelOptions options;
};

/// Of a folder of checkpoints the newest one that is whole; newer ones that are damaged are told.
/// Fails with Code::invalid, in the words of the flags.
Result<CodecModel> open_codec_model(const CodecModelRequest& request);

}  // namespace tj::trainer
