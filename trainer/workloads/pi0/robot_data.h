// What a user says of a robot's data set, and the samples that come of it: the one place where
// --data of a policy is opened. No torch.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/workload/flag.h"
#include "trainer/workload/flag_reader.h"
#include "trainer/workload/workload.h"
#include "trainer/workloads/pi0/robot_samples.h"

namespace tj::trainer {

/// What the policy is made for.
struct RobotPolicyShape {
  std::vector<std::string> cameras;  // names, in the order of the images
  PictureSize picture{.height = 224, .width = 224};
  std::int64_t prompt_tokens = 48;
  std::int64_t vocabulary = 257'152;
  std::int64_t horizon = 50;
  std::int64_t state_width = 32;
  std::int64_t action_width = 32;
  PromptKind prompt = PromptKind::pi0;
};

/// As the flags say.
struct RobotDataOptions {
  std::string tokenizer;  // file
  std::vector<std::pair<std::string, std::string>>
      camera_map;  // camera -> feature; "none": missing
  std::string state = "observation.state";
  std::string action = "action";
  std::string statistics;  // file; empty: those in meta/
  std::string delta_actions;
  Normalisation normalisation = Normalisation::mean_std;
  double held_out_share = 0;
  bool is_augmented = true;  // in training
  bool may_cut_prompts = false;
};

std::span<const Flag> robot_data_flags();
/// `otherwise`: of the kind of policy, mean-std or quantiles.
RobotDataOptions read_robot_data_flags(FlagReader& reader, Normalisation otherwise);

struct OpenedRobotData {
  std::unique_ptr<RobotSamples> source;
  std::optional<Failure> failure = {};
  std::vector<Setting> settings = {};  // rows of the start-up table
  /// What whoever runs the policy needs of the data, a file each: kPolicyFile and kPromptModelFile.
  std::map<std::string, std::string> files = {};
};

/// Beside the weights in a checkpoint: statistics and normalisation of state and actions.
inline constexpr const char* kPolicyFile = "policy.json";
/// Beside the weights, too: the SentencePiece model of the prompts.
inline constexpr const char* kPromptModelFile = "tokenizer.model";

struct PolicyFacts {
  RobotStatistics statistics;
  Normalisation normalisation = Normalisation::mean_std;
  bool may_cut_prompts = false;
};
std::string policy_json(const PolicyFacts& facts);
/// Of the text of kPolicyFile. Fails with Code::invalid and names the field.
Result<PolicyFacts> policy_facts_from(std::string_view json);

/// `training_paths`: those of --data; an evaluation of one of them is of its held-out episodes.
OpenedRobotData open_robot_data(const DataPaths& data,
                                const std::vector<std::string>& training_paths,
                                const RobotPolicyShape& shape, const RobotDataOptions& options);

}  // namespace tj::trainer
