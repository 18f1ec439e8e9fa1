// Opens videos by what the index of their folder says, where that can be believed, and says of
// which it could not.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/video/video_files.h"
#include "trainer/data/video/video_index.h"

namespace tj::trainer {

class IndexedVideos {
 public:
  /// `opener` is prepared for all videos that will be opened, and outlives this.
  explicit IndexedVideos(const VideoOpener& opener) : opener_(opener) {}

  /// For all folders, in place of an index of their own. Fails with Code::not_found.
  Result<void> use(const std::filesystem::path& file);
  /// As the opener does; a file that the index says to be broken is not looked at.
  Result<std::unique_ptr<Video>> open(const VideoFiles& video);

  /// Videos that were opened, but for pictures, and of how many an index told all.
  std::size_t opened() const { return opened_; }
  std::size_t indexed() const { return indexed_; }
  /// "videos/videos.index.jsonl"; "none: ..." with what would make one. And what was scanned
  /// though there is an index, and why.
  std::string text() const;

 private:
  /// Null where the folder has none.
  const VideoIndex* index_of(const std::filesystem::path& folder);
  /// Null, and why in `scanned_`, where it says nothing of the file as it is.
  const VideoIndexEntry* entry_of(const VideoFiles& video);

  const VideoOpener& opener_;
  std::unique_ptr<VideoIndex> for_all_;
  std::map<std::filesystem::path, std::unique_ptr<VideoIndex>> by_folder_;
  std::vector<std::string> problems_;  // lines that were refused, files that were scanned
  std::size_t opened_ = 0;
  std::size_t indexed_ = 0;
};

}  // namespace tj::trainer
