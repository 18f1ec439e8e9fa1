// Which videos a user's folders and files hold, and how one of them is opened: by FFmpeg's
// libraries (a plug-in), or, as PPM pictures, without.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "contract/result.h"
#include "trainer/data/video/plugin_video.h"
#include "trainer/data/video/video.h"

namespace tj::trainer {

/// One video: a file, or pictures of one folder, a frame each, in the order of their names.
struct VideoFiles {
  std::vector<std::filesystem::path> files;
  std::filesystem::path folder = {};  // below which it was found; empty: it was named itself
  bool are_pictures() const;
  /// What messages call it: the file, or the folder of the pictures.
  std::string name() const;
};

/// All videos below `paths`, sorted within each. A file that is named is one whatever its name
/// ends with; below a folder the ending decides. Fails with Code::invalid, in the words of `flag`.
Result<std::vector<VideoFiles>> find_videos(const std::vector<std::string>& paths,
                                            const std::string& flag);

class VideoOpener {
 public:
  /// The plug-in is loaded once something needs it.
  explicit VideoOpener(std::filesystem::path plugin, VideoReading reading = {})
      : plugin_path_(std::move(plugin)), reading_(std::move(reading)) {}
  /// libtrainer_video.so beside this program.
  static std::filesystem::path default_plugin();

  /// Before prepare_for().
  void set(VideoReading reading) { reading_ = std::move(reading); }
  /// Any of them but PPM pictures? Fails with Code::not_found where the plug-in can't be loaded,
  /// with Code::invalid where its decoder can't be had.
  Result<void> prepare_for(const std::vector<VideoFiles>& videos);
  /// What decodes videos; empty where none needed the plug-in.
  const std::string& decoder() const { return decoder_; }

  /// All that follow: after prepare_for(), on any thread.

  /// Fails with Code::invalid and the file. The video outlives this.
  Result<std::unique_ptr<Video>> open(const VideoFiles& video) const;
  /// Of a file of which `facts` are known; it is not looked at before it is read.
  std::unique_ptr<Video> open_known(const VideoFiles& video, const VideoFacts& facts) const;
  /// What would have to be known of it. No pictures.
  Result<VideoFacts> scan(const VideoFiles& video) const;

 private:
  const VideoPlugin& plugin() const;
  Result<std::unique_ptr<Video>> open_file(const std::filesystem::path& file) const;

  std::filesystem::path plugin_path_;
  VideoReading reading_;
  const VideoPlugin* plugin_ = nullptr;
  std::string decoder_;
};

}  // namespace tj::trainer
