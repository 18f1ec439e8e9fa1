// Which videos a user's folders and files hold, and how one of them is opened: by FFmpeg's
// libraries (a plug-in), or, as PPM pictures, without.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/data/video/video.h"

namespace tj::trainer {

/// One video: a file, or pictures of one folder, a frame each, in the order of their names.
struct VideoFiles {
  std::vector<std::filesystem::path> files;
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
  explicit VideoOpener(std::filesystem::path plugin) : plugin_path_(std::move(plugin)) {}
  /// libtrainer_video.so beside this program.
  static std::filesystem::path default_plugin();

  /// Any of them but PPM pictures? Fails with Code::not_found where the plug-in can't be loaded.
  Result<void> prepare_for(const std::vector<VideoFiles>& videos);
  /// After prepare_for(). Fails with Code::invalid and the file. On any thread. The video outlives
  /// this.
  Result<std::unique_ptr<Video>> open(const VideoFiles& video) const;

 private:
  Result<std::unique_ptr<Video>> open_file(const std::filesystem::path& file) const;

  std::filesystem::path plugin_path_;
  const struct VideoPlugin* plugin_ = nullptr;
};

}  // namespace tj::trainer
