// What a robot sees at one moment, as a user writes it, and what a trained policy makes of it: the
// same tensors as in its training, and actions as the robot takes them. No torch.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contract/result.h"
#include "trainer/data/prompt/sentence_model.h"
#include "trainer/data/video/video_files.h"
#include "trainer/workload/sample_source.h"
#include "trainer/workloads/pi0/robot_data.h"

namespace tj::trainer {

struct Observation {
  std::vector<float> state;  // as the robot says it
  std::string task;
  std::vector<std::pair<std::string, std::filesystem::path>> images;  // camera -> picture
};

/// Of a JSON object {"state": [...], "task": "...", "images": {"base_0_rgb": "top.png"}}. Paths are
/// below `folder`. Fails with Code::invalid and names the field.
Result<Observation> observation_from(std::string_view json, const std::filesystem::path& folder);

class PolicyView {
 public:
  /// `tokenizer`: file of the prompts' SentencePiece model. `actions`: numbers of an action that
  /// the robot has. Fails with Code::invalid where they don't fit together.
  static Result<PolicyView> make(const RobotPolicyShape& shape, std::int64_t actions,
                                 const PolicyFacts& facts, const std::filesystem::path& tokenizer);

  /// One sample, in the order of RobotSamples::read; its actions are zeros. A camera of which there
  /// is no picture is masked. Fails with Code::invalid and names the field, and the file.
  Result<std::vector<HostTensor>> see(const Observation& observation);
  /// Of a chunk [horizon, action width] of the policy, for the robot in that state: rows of the
  /// robot's own numbers.
  std::vector<std::vector<float>> actions(std::span<const float> chunk,
                                          std::span<const float> state) const;

 private:
  PolicyView(RobotFramesOptions options, std::int64_t actions, SentenceModel model)
      : options_(std::move(options)),
        action_count_(static_cast<std::size_t>(actions)),
        model_(std::move(model)) {}
  Result<void> see_state(const Observation& observation, std::span<float> place) const;
  Result<void> see_task(const Observation& observation, const RobotFramePlace& place) const;
  Result<void> see_images(const Observation& observation, const RobotFramePlace& place);
  Result<std::vector<std::byte>> picture(const std::filesystem::path& file);

  RobotFramesOptions options_;
  std::size_t action_count_;
  std::size_t state_count_ = 0;  // 0: any
  SentenceModel model_;
  Normaliser state_, action_;
  VideoOpener opener_{VideoOpener::default_plugin()};
};

}  // namespace tj::trainer
