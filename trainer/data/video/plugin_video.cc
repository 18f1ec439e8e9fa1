#include "trainer/data/video/plugin_video.h"

#include <cstdio>
#include <span>
#include <utility>

#include "trainer/data/video/libav/abi.h"

namespace tj::trainer {
namespace {

Error wrong(const std::string& subject, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = subject};
}

/// A video that the plug-in has opened.
class Opened {
 public:
  Opened(const VideoPlugin& plugin, void* video) : plugin_(&plugin), video_(video) {}
  Opened(Opened&& other) noexcept
      : plugin_(other.plugin_), video_(std::exchange(other.video_, nullptr)) {}
  Opened& operator=(Opened&&) = delete;
  ~Opened() {
    if (video_ != nullptr) plugin_->close(video_);
  }
  const VideoPlugin& plugin() const { return *plugin_; }
  void* get() const { return video_; }

 private:
  const VideoPlugin* plugin_;
  void* video_;
};

struct Scanned {
  Opened video;
  VideoInfo info;  // its arrays are the video's
};

Result<Scanned> scanned(const VideoPlugin& plugin, const std::filesystem::path& file) {
  VideoInfo info;
  PluginText why;
  void* const video = plugin.open(file.c_str(), &info, &why);
  if (video == nullptr) return wrong(file.string(), why.bytes);
  return Scanned{.video = Opened(plugin, video), .info = info};
}

class PluginVideo final : public Video {
 public:
  PluginVideo(Opened video, const VideoShape& shape, std::string path)
      : video_(std::move(video)), shape_(shape), path_(std::move(path)) {}

  VideoShape shape() const override { return shape_; }

  Result<void> read(std::span<const std::int64_t> frames, std::span<std::byte> rgb) const override {
    return read_part(frames, {.height = shape_.height, .width = shape_.width}, rgb);
  }

  Result<void> read_part(std::span<const std::int64_t> frames, const VideoPart& part,
                         std::span<std::byte> rgb) const override {
    TJ_CHECK(rgb.size() == frames.size() * part.bytes(), "room for all frames");
    TJ_CHECK(part.top >= 0 && part.left >= 0 && part.top + part.height <= shape_.height &&
                 part.left + part.width <= shape_.width,
             "the part lies in the frame");
    const VideoRectangle rectangle{.top = static_cast<int>(part.top),
                                   .left = static_cast<int>(part.left),
                                   .height = static_cast<int>(part.height),
                                   .width = static_cast<int>(part.width)};
    PluginText why;
    if (!video_.plugin().read(video_.get(), frames.data(), static_cast<std::int64_t>(frames.size()),
                              &rectangle, reinterpret_cast<unsigned char*>(rgb.data()), &why))
      return wrong(path_, why.bytes);
    return {};
  }

 private:
  const Opened video_;
  const VideoShape shape_;
  const std::string path_;
};

VideoShape shape_of(const VideoInfo& info) {
  const FrameRate rate{.numerator = info.rate_frames, .denominator = info.rate_seconds};
  return {.frames = info.times.frames,
          .height = info.height,
          .width = info.width,
          .rate = rate.is_known() ? rate : FrameRate{}};
}

VideoInfo info_of(const VideoFacts& facts) {
  VideoInfo info{.height = facts.height,
                 .width = facts.width,
                 .seconds = facts.seconds,
                 .rate_frames = facts.rate_frames,
                 .rate_seconds = facts.rate_seconds};
  std::snprintf(info.codec, sizeof info.codec, "%s", facts.codec.c_str());
  info.times = view_of(facts.times);
  return info;
}

}  // namespace

Result<std::string> configure_videos(const VideoPlugin& plugin, const VideoReading& reading) {
  const VideoSettings settings{.frame_cache_bytes = reading.frame_cache_bytes,
                               .decoder = reading.decoder.c_str(),
                               .device_number = reading.device_number};
  PluginText said;
  if (plugin.configure(&settings, &said)) return std::string(said.bytes);
  return wrong(reading.decoder_flag, "is \"" + reading.decoder + "\"; " + said.bytes +
                                         "; cpu needs none, auto takes what is there");
}

Result<VideoFacts> scan_video(const VideoPlugin& plugin, const std::filesystem::path& file) {
  const auto video = scanned(plugin, file);
  if (!video) return video.error();
  const auto& info = video->info;
  return VideoFacts{.height = info.height,
                    .width = info.width,
                    .seconds = info.seconds,
                    .rate_frames = info.rate_frames,
                    .rate_seconds = info.rate_seconds,
                    .codec = info.codec,
                    .times = copy_of(info.times)};
}

Result<std::unique_ptr<Video>> open_video(const VideoPlugin& plugin,
                                          const std::filesystem::path& file) {
  auto found = scanned(plugin, file);
  if (!found) return found.error();
  auto& [video, info] = *found;
  return std::unique_ptr<Video>(
      std::make_unique<PluginVideo>(std::move(video), shape_of(info), file.string()));
}

std::unique_ptr<Video> known_video(const VideoPlugin& plugin, const std::filesystem::path& file,
                                   const VideoFacts& facts) {
  const auto info = info_of(facts);
  return std::make_unique<PluginVideo>(Opened(plugin, plugin.open_known(file.c_str(), &info)),
                                       shape_of(info), file.string());
}

}  // namespace tj::trainer
