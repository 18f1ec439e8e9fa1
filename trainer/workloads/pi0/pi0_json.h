// The config.json beside the weights of a pi0: LeRobot's, which reads a checkpoint of the published
// sizes as it is, and by which ours is known again.
#pragma once
#include <filesystem>
#include <string>

#include "contract/result.h"
#include "trainer/data/lerobot/statistics.h"
#include "trainer/workloads/pi0/pi0_config.h"

namespace tj::trainer {

/// In the words of LeRobot's PI0Config and PI05Config. What is not of the published sizes has those
/// under "sizes", which LeRobot refuses, as it can't make such a model. `normalisation`: of state
/// and actions.
std::string pi0_config_json(const Pi0Config& config, Normalisation normalisation);

/// Of a text that somebody else may have written; `file`: where it stands. What it doesn't say is
/// as in LeRobot. Fails with Code::invalid for what is no config of a pi0, or of none that could be
/// made.
Result<Pi0Config> pi0_config_from(const std::string& text, const std::filesystem::path& file);

}  // namespace tj::trainer
