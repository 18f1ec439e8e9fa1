// What a policy learns from: frames of a LeRobot data set with their chunk of actions, read by
// number as a pure function of it. No torch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/data/lerobot/lerobot_set.h"
#include "trainer/data/lerobot/resize_with_pad.h"
#include "trainer/data/lerobot/statistics.h"
#include "trainer/data/prompt/prompt.h"
#include "trainer/data/video/indexed_videos.h"

namespace tj::trainer {

/// A camera that the policy sees, and the feature of the data set that it is.
struct CameraSlot {
  std::string name;  // base_0_rgb
  std::string
      feature;  // observation.images.top; empty: the data has none, a black picture stands in
  bool operator==(const CameraSlot&) const = default;
};

/// Which episodes, by number. Of a share that is held out, evenly spread over the data set.
struct EpisodeSplit {
  std::vector<std::size_t> train;
  std::vector<std::size_t> held_out;
};
EpisodeSplit split_episodes(std::size_t count, double held_out_share);

struct RobotFramesOptions {
  std::vector<CameraSlot> cameras;
  PictureSize picture{.height = 224, .width = 224};
  std::int64_t horizon = 50;
  /// Numbers of a state and an action; zeros behind those of the data. 0: those of the data.
  std::int64_t state_width = 0;
  std::int64_t action_width = 0;
  Normalisation normalisation = Normalisation::mean_std;
  std::vector<bool> is_delta;  // actions minus the state, by dimension; empty: none
  PromptRule prompt;
  bool is_augmented = false;
  std::vector<std::size_t> episodes;       // ascending; empty: all
  std::filesystem::path video_index = {};  // in place of that in videos/; empty: none
  std::string flag = "--data";             // for messages
};

/// Room for one frame.
struct RobotFramePlace {
  std::span<std::byte> images;      // [cameras, 3, height, width], 0 to 255
  std::span<std::byte> image_mask;  // [cameras], 1: there is such a picture
  std::span<std::int32_t> tokens;   // [prompt]
  std::span<std::byte> token_mask;  // [prompt], 1: of the text
  std::span<float> state;           // [state width], normalised
  std::span<float> actions;         // [horizon, action width], normalised
  std::span<std::byte> action_pad;  // [horizon], 1: beyond the end of the episode
};

class RobotFrames {
 public:
  /// `encode` makes ids of texts. Opens the videos of the cameras. Fails with Code::invalid and
  /// names what is missing: a camera, a dimension, a prompt's length, a video.
  static Result<std::unique_ptr<RobotFrames>> make(LeRobotSet set,
                                                   const RobotStatistics& statistics,
                                                   EncodeText encode, VideoOpener& opener,
                                                   RobotFramesOptions options);

  std::int64_t count() const { return count_; }
  const LeRobotSet& set() const { return set_; }
  const RobotFramesOptions& options() const { return options_; }
  /// Of actions, for whoever runs the policy.
  const Normaliser& action_normaliser() const { return action_; }
  const Normaliser& state_normaliser() const { return state_; }
  /// How the videos were opened (IndexedVideos::text()); empty where there are none.
  const std::string& videos_text() const { return videos_text_; }
  /// Tasks whose prompt is cut, as the rule allows.
  std::size_t cut_prompts() const { return cut_prompts_; }

  /// The frame of sample `index`, below count().
  LeRobotFrame frame(std::int64_t index) const;
  /// `key`: what augmentation is drawn by; the same gives the same bytes. On any thread. Fails with
  /// Code::invalid and names video, episode and frame.
  Result<void> read(std::int64_t index, std::uint64_t key, const RobotFramePlace& place) const;

  /// One frame of a camera as it is in the video, rows of RGB; `size` says how large.
  Result<std::vector<std::byte>> picture(const LeRobotFrame& frame, const std::string& feature,
                                         PictureSize& size) const;

 private:
  RobotFrames(LeRobotSet set, EncodeText encode, RobotFramesOptions options)
      : set_(std::move(set)), encode_(std::move(encode)), options_(std::move(options)) {}
  Result<void> check_cameras() const;
  Result<void> check_widths() const;
  Result<void> open_videos(VideoOpener& opener);
  Result<void> make_prompts();
  Result<std::int64_t> video_frame(const LeRobotFrame& frame, const LeRobotVideo& place) const;
  Result<void> read_pictures(const LeRobotFrame& frame, std::uint64_t key,
                             const RobotFramePlace& place) const;
  void read_numbers(const LeRobotFrame& frame, const RobotFramePlace& place) const;
  Result<void> read_prompt(const LeRobotFrame& frame, const RobotFramePlace& place) const;
  std::string place_text(const LeRobotFrame& frame) const;

  LeRobotSet set_;
  EncodeText encode_;
  RobotFramesOptions options_;
  Normaliser state_;
  Normaliser action_;
  std::vector<std::unique_ptr<Video>> videos_;  // by LeRobotMeta::videos; null: of no such camera
  std::string videos_text_;
  std::vector<Prompt> prompts_;     // by task, where they are of the task alone
  std::vector<std::int64_t> ends_;  // samples of each episode in use and those before it
  std::int64_t count_ = 0;
  std::size_t cut_prompts_ = 0;
};

}  // namespace tj::trainer
