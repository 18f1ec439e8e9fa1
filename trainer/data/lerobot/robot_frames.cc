#include "trainer/data/lerobot/robot_frames.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "trainer/data/lerobot/augmentation.h"

namespace tj::trainer {
namespace {

/// As LeRobot's tolerance_s, and what a timestamp in float32 may be off after hours.
constexpr double kToleranceSeconds = 1e-4;
constexpr double kFloatShare = 1.0 / (1 << 22);
constexpr std::size_t kChannels = 3;

Error wrong(std::string subject, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = std::move(subject)};
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

EpisodeSplit split_episodes(std::size_t count, double held_out_share) {
  EpisodeSplit split;
  for (std::size_t episode = 0; episode < count; ++episode) {
    const auto before = std::floor(static_cast<double>(episode) * held_out_share);
    const auto after = std::floor(static_cast<double>(episode + 1) * held_out_share);
    (after > before ? split.held_out : split.train).push_back(episode);
  }
  return split;
}

Result<std::unique_ptr<RobotFrames>> RobotFrames::make(LeRobotSet set,
                                                       const RobotStatistics& statistics,
                                                       EncodeText encode, VideoOpener& opener,
                                                       RobotFramesOptions options) {
  auto made = std::unique_ptr<RobotFrames>(
      new RobotFrames(std::move(set), std::move(encode), std::move(options)));
  auto& own = made->options_;
  if (own.state_width == 0) own.state_width = made->set_.state.width;
  if (own.action_width == 0) own.action_width = made->set_.action.width;
  if (auto checked = made->check_widths(); !checked) return checked.error();
  if (auto checked = made->check_cameras(); !checked) return checked.error();
  auto state = Normaliser::make(own.normalisation, statistics.state, made->set_.state.width,
                                statistics.state_name);
  if (!state) return state.error();
  auto action = Normaliser::make(own.normalisation, statistics.action, made->set_.action.width,
                                 statistics.action_name);
  if (!action) return action.error();
  made->state_ = std::move(*state);
  made->action_ = std::move(*action);
  if (own.episodes.empty()) {
    own.episodes.resize(made->set_.meta.episodes.size());
    std::iota(own.episodes.begin(), own.episodes.end(), 0);
  }
  for (const auto episode : own.episodes)
    made->ends_.push_back(made->count_ += made->set_.meta.episodes[episode].length);
  if (auto prompts = made->make_prompts(); !prompts) return prompts.error();
  if (auto opened = made->open_videos(opener); !opened) return opened.error();
  return made;
}

Result<void> RobotFrames::check_widths() const {
  const auto subject = options_.flag + " " + set_.folder.string();
  const auto too_wide = [&](const char* what, std::int64_t is, std::int64_t most) -> Result<void> {
    if (is <= most) return {};
    return wrong(subject, std::string("its ") + what + " has " + std::to_string(is) +
                              " numbers, and the policy takes " + std::to_string(most));
  };
  if (auto fits = too_wide("state", set_.state.width, options_.state_width); !fits) return fits;
  if (auto fits = too_wide("action", set_.action.width, options_.action_width); !fits) return fits;
  for (std::size_t i = 0; i < options_.is_delta.size(); ++i) {
    const auto dimension = static_cast<std::int64_t>(i);
    if (options_.is_delta[i] && (dimension >= set_.state.width || dimension >= set_.action.width))
      return wrong(subject, "dimension " + std::to_string(i) +
                                " of the actions is to be minus that of the state, and the state "
                                "has " +
                                std::to_string(set_.state.width) + ", the action " +
                                std::to_string(set_.action.width));
  }
  return {};
}

Result<void> RobotFrames::check_cameras() const {
  const auto subject = options_.flag + " " + set_.folder.string();
  bool has_any = false;
  for (const auto& slot : options_.cameras) {
    if (slot.feature.empty()) continue;
    has_any = true;
    const auto found = set_.info.features.find(slot.feature);
    if (found == set_.info.features.end() || !found->second.is_camera())
      return wrong(subject, "has no camera \"" + slot.feature + "\", for " + slot.name +
                                "; its cameras are " + joined(set_.info.cameras()));
    if (found->second.dtype == "image")
      return wrong(subject, "its camera \"" + slot.feature +
                                "\" is stored as pictures in Parquet, and videos are read: "
                                "`lerobot-edit-dataset --operation.type convert_image_to_video` "
                                "makes such a data set of it");
  }
  if (has_any || options_.cameras.empty()) return {};
  return wrong(subject, "none of the policy's cameras is one of the data set's, which are " +
                            joined(set_.info.cameras()));
}

Result<void> RobotFrames::open_videos(VideoOpener& opener) {
  std::vector<bool> is_wanted(set_.meta.videos.size());
  for (std::size_t camera = 0; camera < set_.meta.cameras.size(); ++camera) {
    const auto is_seen = [&](const CameraSlot& slot) {
      return slot.feature == set_.meta.cameras[camera];
    };
    if (std::ranges::none_of(options_.cameras, is_seen)) continue;
    for (const auto episode : options_.episodes)
      is_wanted[set_.meta.episodes[episode].videos[camera].file] = true;
  }
  videos_.resize(is_wanted.size());
  std::vector<VideoFiles> files(is_wanted.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto file = set_.folder / set_.meta.videos[i];
    files[i] = {.files = {file}, .folder = set_.folder / "videos"};
  }
  if (std::ranges::find(is_wanted, true) == is_wanted.end()) return {};
  if (auto ready = opener.prepare_for(files); !ready) return ready;
  IndexedVideos indexed(opener);
  if (!options_.video_index.empty())
    if (auto used = indexed.use(options_.video_index); !used) return used;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!is_wanted[i]) continue;
    auto video = indexed.open(files[i]);
    if (!video) return video.error();
    videos_[i] = std::move(*video);
  }
  videos_text_ = indexed.text();
  return {};
}

Result<void> RobotFrames::make_prompts() {
  if (options_.prompt.kind != PromptKind::pi0) return {};
  for (std::size_t task = 0; task < set_.meta.tasks.size(); ++task) {
    auto prompt = make_prompt(encode_, options_.prompt, set_.meta.tasks[task], {});
    if (!prompt)
      return wrong(options_.flag + " " + set_.folder.string(),
                   "task " + std::to_string(task) + ": " + prompt.error().message);
    if (prompt->count > options_.prompt.length) ++cut_prompts_;
    prompts_.push_back(std::move(*prompt));
  }
  return {};
}

LeRobotFrame RobotFrames::frame(std::int64_t index) const {
  const auto found = std::ranges::upper_bound(ends_, index);
  const auto place = static_cast<std::size_t>(found - ends_.begin());
  const auto episode = options_.episodes[place];
  const auto within = index - (place == 0 ? 0 : ends_[place - 1]);
  return {.episode = episode, .number = set_.meta.episodes[episode].first_frame + within};
}

std::string RobotFrames::place_text(const LeRobotFrame& frame) const {
  return "episode " + std::to_string(frame.episode) + ", frame " +
         std::to_string(frame.number - set_.meta.episodes[frame.episode].first_frame) + ": ";
}

/// The one that is shown at the frame's time, as LeRobot finds it: the nearest, and no other within
/// its tolerance.
Result<std::int64_t> RobotFrames::video_frame(const LeRobotFrame& frame,
                                              const LeRobotVideo& place) const {
  const auto shape = videos_[place.file]->shape();
  const double rate = shape.rate.is_known() ? static_cast<double>(shape.rate.numerator) /
                                                  static_cast<double>(shape.rate.denominator)
                                            : set_.info.fps;
  const auto within = static_cast<double>(set_.timestamps[static_cast<std::size_t>(frame.number)]);
  const auto time = place.from_timestamp + within;
  const auto number = std::round(time * rate);
  const auto tolerance = kToleranceSeconds + std::abs(within) * kFloatShare;
  if (std::abs(number / rate - time) <= tolerance && number >= 0 &&
      number < static_cast<double>(shape.frames))
    return static_cast<std::int64_t>(number);
  char text[200];
  std::snprintf(text, sizeof text,
                "no frame is shown at %.6f s: it has %lld frames at %.6g a second", time,
                static_cast<long long>(shape.frames), rate);
  return wrong((set_.folder / set_.meta.videos[place.file]).string(), place_text(frame) + text);
}

Result<std::vector<std::byte>> RobotFrames::picture(const LeRobotFrame& frame,
                                                    const std::string& feature,
                                                    PictureSize& size) const {
  const auto camera = static_cast<std::size_t>(std::ranges::find(set_.meta.cameras, feature) -
                                               set_.meta.cameras.begin());
  const auto& place = set_.meta.episodes[frame.episode].videos[camera];
  const auto number = video_frame(frame, place);
  if (!number) return number.error();
  const auto& video = *videos_[place.file];
  const auto shape = video.shape();
  size = {.height = shape.height, .width = shape.width};
  std::vector<std::byte> rgb(shape.frame_bytes());
  if (auto read = video.read({&*number, 1}, rgb); !read)
    return Error{.code = read.error().code,
                 .message = place_text(frame) + read.error().message,
                 .subject = read.error().subject};
  return rgb;
}

Result<void> RobotFrames::read_pictures(const LeRobotFrame& frame, std::uint64_t key,
                                        const RobotFramePlace& place) const {
  const auto bytes = kChannels * static_cast<std::size_t>(options_.picture.height) *
                     static_cast<std::size_t>(options_.picture.width);
  for (std::size_t i = 0; i < options_.cameras.size(); ++i) {
    const auto& slot = options_.cameras[i];
    const auto image = place.images.subspan(i * bytes, bytes);
    place.image_mask[i] = slot.feature.empty() ? std::byte{0} : std::byte{1};
    if (slot.feature.empty()) {
      std::ranges::fill(image, std::byte{0});
      continue;
    }
    PictureSize size;
    const auto rgb = picture(frame, slot.feature, size);
    if (!rgb) return rgb.error();
    auto fitted = resized_with_pad(*rgb, size, options_.picture);
    if (options_.is_augmented) augment(fitted, options_.picture, augmentation_of(key, slot.name));
    write_planes(fitted, image.data());
  }
  return {};
}

void RobotFrames::read_numbers(const LeRobotFrame& frame, const RobotFramePlace& place) const {
  const auto state = set_.state.of(frame.number);
  std::ranges::fill(place.state, 0.0F);
  std::ranges::copy(state, place.state.begin());
  state_.apply(place.state.first(state.size()));

  const auto& episode = set_.meta.episodes[frame.episode];
  const auto end = episode.first_frame + episode.length;
  const auto width = static_cast<std::size_t>(options_.action_width);
  std::ranges::fill(place.actions, 0.0F);
  for (std::int64_t step = 0; step < options_.horizon; ++step) {
    const auto number = std::min(frame.number + step, end - 1);
    const auto action = set_.action.of(number);
    const auto at = static_cast<std::size_t>(step);
    const auto row = place.actions.subspan(at * width, action.size());
    std::ranges::copy(action, row.begin());
    for (std::size_t i = 0; i < options_.is_delta.size(); ++i)
      if (options_.is_delta[i]) row[i] -= state[i];
    action_.apply(row);
    place.action_pad[at] = frame.number + step >= end ? std::byte{1} : std::byte{0};
  }
}

Result<void> RobotFrames::read_prompt(const LeRobotFrame& frame,
                                      const RobotFramePlace& place) const {
  const auto task = static_cast<std::size_t>(set_.tasks[static_cast<std::size_t>(frame.number)]);
  Prompt made;
  const bool is_of_task = options_.prompt.kind == PromptKind::pi0;
  if (!is_of_task) {
    // The state as openpi says it: before it is filled up with zeros.
    const auto state = place.state.first(static_cast<std::size_t>(set_.state.width));
    auto prompt = make_prompt(encode_, options_.prompt, set_.meta.tasks[task], state);
    if (!prompt)
      return wrong(options_.flag + " " + set_.folder.string(),
                   place_text(frame) + prompt.error().message);
    made = std::move(*prompt);
  }
  const auto& prompt = is_of_task ? prompts_[task] : made;
  std::ranges::copy(prompt.ids, place.tokens.begin());
  for (std::size_t i = 0; i < place.token_mask.size(); ++i)
    place.token_mask[i] = std::byte{static_cast<std::int64_t>(i) < prompt.count};
  return {};
}

Result<void> RobotFrames::read(std::int64_t index, std::uint64_t key,
                               const RobotFramePlace& place) const {
  const auto at = frame(index);
  read_numbers(at, place);
  if (auto read = read_prompt(at, place); !read) return read;
  return read_pictures(at, key, place);
}

}  // namespace tj::trainer
