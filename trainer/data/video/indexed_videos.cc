#include "trainer/data/video/indexed_videos.h"

#include <algorithm>

namespace tj::trainer {
namespace {
constexpr std::size_t kNamedMax = 3;  // in one text
}  // namespace

Result<void> IndexedVideos::use(const std::filesystem::path& file) {
  auto index = read_video_index(file);
  if (!index) return index.error();
  for (const auto& line : index->refused) problems_.push_back(line);
  for_all_ = std::make_unique<VideoIndex>(std::move(*index));
  return {};
}

const VideoIndex* IndexedVideos::index_of(const std::filesystem::path& folder) {
  if (for_all_ != nullptr || folder.empty()) return folder.empty() ? nullptr : for_all_.get();
  const auto [place, is_new] = by_folder_.try_emplace(folder);
  if (!is_new) return place->second.get();
  auto index = read_video_index(folder / kVideoIndexFile);
  if (index) {
    for (const auto& line : index->refused) problems_.push_back(line);
    place->second = std::make_unique<VideoIndex>(std::move(*index));
  } else if (index.error().code != Code::not_found) {
    problems_.push_back(describe(index.error()));
  }
  return place->second.get();
}

const VideoIndexEntry* IndexedVideos::entry_of(const VideoFiles& video) {
  const auto* const index = index_of(video.folder);
  if (index == nullptr) return nullptr;
  const auto& file = video.files.front();
  const auto name = file.lexically_relative(video.folder).generic_string();
  const auto found = index->entries.find(name);
  if (found == index->entries.end()) {
    problems_.push_back(name + " is not in it");
    return nullptr;
  }
  const auto state = state_of(file);
  if (state && *state == found->second.state) return &found->second;
  problems_.push_back(name + " has changed since");
  return nullptr;
}

Result<std::unique_ptr<Video>> IndexedVideos::open(const VideoFiles& video) {
  if (video.are_pictures()) return opener_.open(video);
  ++opened_;
  const auto* const entry = entry_of(video);
  if (entry == nullptr) return opener_.open(video);
  ++indexed_;
  if (entry->broken.empty()) return opener_.open_known(video, entry->facts);
  return Error{
      .code = Code::invalid, .message = entry->broken, .subject = video.files.front().string()};
}

std::string IndexedVideos::text() const {
  std::string text;
  const auto add = [&text](const std::string& words, const char* between) {
    text += (text.empty() ? "" : between) + words;
  };
  if (for_all_ != nullptr) add(for_all_->file.string(), "");
  for (const auto& [folder, index] : by_folder_)
    if (index != nullptr) add(index->file.string(), ", ");
  if (text.empty() && problems_.empty()) return "none; `trainer prepare video` makes one";
  for (std::size_t i = 0; i < std::min(problems_.size(), kNamedMax); ++i) add(problems_[i], "; ");
  if (problems_.size() > kNamedMax)
    add("and " + std::to_string(problems_.size() - kNamedMax) + " more", "; ");
  return text;
}

}  // namespace tj::trainer
