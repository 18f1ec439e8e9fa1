// A trained pi0, for what comes after training: found by what a user names, with its weights.
// Includes torch.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "contract/result.h"
#include "trainer/workloads/pi0/pi0.h"

namespace tj::trainer {

struct TrainedPi0 {
  std::filesystem::path weights;  // a file, or a folder: of a training its newest checkpoint
  Pi0Config config;
  std::unique_ptr<Pi0> model;
};

struct TrainedPi0Request {
  std::filesystem::path from;
  std::string flag = "--from";        // with which it was named: all messages say it
  std::optional<std::string> preset;  // the shape, where no config.json beside the weights says it
  ModelOptions options;
};

/// Newer checkpoints that are damaged are told. Fails with Code::invalid, in the flags' words.
Result<TrainedPi0> open_trained_pi0(const TrainedPi0Request& request);

}  // namespace tj::trainer
