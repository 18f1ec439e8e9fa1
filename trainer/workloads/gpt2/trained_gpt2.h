// A trained GPT-2, for what comes after training: found by what a user names, with its weights.
// Includes torch.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "contract/result.h"
#include "trainer/workloads/gpt2/gpt2.h"

namespace tj::trainer {

struct TrainedGpt2 {
  std::filesystem::path weights;  // a file, or a folder: of a training its newest checkpoint
  Gpt2Config config;
  std::int64_t tokenizer_vocabulary = 0;  // as in InitialModel
  std::unique_ptr<Gpt2> model;
};

struct TrainedGpt2Request {
  std::filesystem::path from;
  std::optional<std::string> preset;  // has the heads where no config.json beside the weights says
  ModelOptions options;
};

/// Newer checkpoints that are damaged are told. Fails with Code::invalid, in the flags' words.
Result<TrainedGpt2> open_trained_gpt2(const TrainedGpt2Request& request);

}  // namespace tj::trainer
