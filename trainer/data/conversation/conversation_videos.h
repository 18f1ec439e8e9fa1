// Videos that conversations show. Each is looked through when it first comes, and opened by what
// was found from then on: conversations come again in every epoch, and share their videos.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "contract/result.h"
#include "trainer/data/video/video_files.h"

namespace tj::trainer {

/// Of which it is remembered what is in them.
inline constexpr std::size_t kKnownVideosMax = 65'536;

class ConversationVideos {
 public:
  /// The plug-in (libtrainer_video.so) is loaded when the first video comes.
  explicit ConversationVideos(std::filesystem::path plugin) : opener_(std::move(plugin)) {}

  /// On any thread. Fails with Code::invalid: with the file, for what is no video, has no frame or
  /// larger ones than a picture may have; or with the plug-in (lacks_plugin()).
  Result<std::unique_ptr<Video>> open(const std::filesystem::path& file);
  /// True once a video came and nothing was there to read it: no conversation is to blame.
  bool lacks_plugin() const;

 private:
  struct Known {
    FileState state;
    VideoFacts facts;
  };
  Result<void> load_plugin(const VideoFiles& video);
  Result<std::unique_ptr<Video>> open_looked_through(const VideoFiles& video);
  Result<VideoFacts> facts_of(const VideoFiles& video);

  mutable std::mutex mutex_;  // guards all below while the plug-in is not loaded, then `known_`
  VideoOpener opener_;
  bool lacks_plugin_ = false;
  std::map<std::filesystem::path, Known> known_;
};

}  // namespace tj::trainer
