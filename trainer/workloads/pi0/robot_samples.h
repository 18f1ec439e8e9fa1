// Frames of a robot's data set as samples of a policy. No torch.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/lerobot/robot_frames.h"
#include "trainer/workload/sample_source.h"

namespace tj::trainer {

/// The tensors of so many samples (RobotSamples::read), all zeros.
std::vector<HostTensor> robot_tensors(const RobotFramesOptions& options, std::int64_t samples);
/// Where one of them lies in such tensors.
RobotFramePlace place_in(std::vector<HostTensor>& tensors, std::size_t row);

class RobotSamples final : public SampleSource {
 public:
  /// `digest`: of all that the samples depend on beside the data set and the options of `frames`,
  /// such as the tokenizer and the statistics.
  RobotSamples(std::unique_ptr<RobotFrames> frames, std::string digest)
      : frames_(std::move(frames)), digest_(std::move(digest)) {}

  std::int64_t sample_count() const override { return frames_->count(); }
  /// Eight tensors, in this order (pi0_batch.h):
  /// - images: uint8 [samples, cameras, 3, height, width], 0 to 255 for -1 to 1, 0 where a
  ///   camera is missing
  /// - image mask: uint8 [samples, cameras], 1: there is such a picture
  /// - tokens: int32 [samples, prompt], 0 behind the text
  /// - token mask: uint8 [samples, prompt], 1: of the text
  /// - state: float32 [samples, state width], normalised, 0 behind the data's own numbers
  /// - actions: float32 [samples, horizon, action width], the same; beyond the end of an
  ///   episode its last one
  /// - numbers: int32 [samples], the samples' own
  /// - action pad: uint8 [samples, horizon], 1: beyond the end of the episode
  /// The weight is the number of the data's own values of actions.
  Result<SampleBatch> read(std::span<const Sample> samples) const override;
  DataMark mark() const override;
  std::string description() const override;

  const RobotFrames& frames() const { return *frames_; }

 private:
  std::unique_ptr<RobotFrames> frames_;
  std::string digest_;
};

}  // namespace tj::trainer
