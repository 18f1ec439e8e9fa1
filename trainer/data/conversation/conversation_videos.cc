#include "trainer/data/conversation/conversation_videos.h"

#include <string>

#include "trainer/data/picture/codecs/abi.h"

namespace tj::trainer {
namespace {

/// Of one video's stretches of even frames, and of its keys: what has more is looked through anew.
constexpr std::size_t kKnownTimesMax = 256;

Error wrong(const std::filesystem::path& file, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = file.string()};
}

}  // namespace

bool ConversationVideos::lacks_plugin() const {
  const std::scoped_lock lock(mutex_);
  return lacks_plugin_;
}

Result<void> ConversationVideos::load_plugin(const VideoFiles& video) {
  const std::scoped_lock lock(mutex_);
  const auto ready = opener_.prepare_for({video});
  if (ready) return ready;
  lacks_plugin_ = true;
  auto error = ready.error();
  error.code = Code::invalid;
  return error;
}

Result<VideoFacts> ConversationVideos::facts_of(const VideoFiles& video) {
  const auto& file = video.files.front();
  const auto state = state_of(file);
  if (!state) return state.error();
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = known_.find(file);
        found != known_.end() && found->second.state == *state)
      return found->second.facts;
  }
  auto facts = opener_.scan(video);
  if (!facts) return facts;
  const std::scoped_lock lock(mutex_);
  const bool is_short = facts->times.runs.size() + facts->times.keys.size() <= kKnownTimesMax;
  if (is_short && known_.size() < kKnownVideosMax)
    known_.insert_or_assign(file, Known{.state = *state, .facts = *facts});
  return facts;
}

Result<std::unique_ptr<Video>> ConversationVideos::open_looked_through(const VideoFiles& video) {
  if (video.are_pictures()) return opener_.open(video);
  const auto facts = facts_of(video);
  if (!facts) return facts.error();
  return opener_.open_known(video, *facts);
}

Result<std::unique_ptr<Video>> ConversationVideos::open(const std::filesystem::path& file) {
  const VideoFiles files{.files = {file}};
  if (const auto loaded = load_plugin(files); !loaded) return loaded.error();
  auto video = open_looked_through(files);
  if (!video) return video;
  const auto shape = (*video)->shape();
  if (shape.frames < 1) return wrong(file, "has no frames; a video has one at least");
  if (shape.height < 1 || shape.width < 1 || shape.width > kPicturePixelsMax / shape.height)
    return wrong(file, "is " + std::to_string(shape.width) + " x " + std::to_string(shape.height) +
                           " pixels; a frame has " + std::to_string(kPicturePixelsMax) +
                           " at most");
  return video;
}

}  // namespace tj::trainer
