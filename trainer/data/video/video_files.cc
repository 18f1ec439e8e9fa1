#include "trainer/data/video/video_files.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include "trainer/data/file_walk.h"
#include "trainer/data/video/ppm_picture.h"
#include "trainer/data/video/video_plugin.h"
#include "trainer/process/data_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::array<std::string_view, 16> kVideoEndings{
    ".mp4",  ".m4v", ".mov", ".mkv", ".webm", ".avi", ".ts",   ".mpg",
    ".mpeg", ".ogv", ".flv", ".wmv", ".gif",  ".y4m", ".h264", ".nut"};
constexpr std::array<std::string_view, 6> kPictureEndings{".ppm",  ".png",  ".jpg",
                                                          ".jpeg", ".webp", ".bmp"};

std::string ending_of(const fs::path& file) {
  auto ending = file.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending;
}

bool is_picture(const fs::path& file) {
  return std::ranges::find(kPictureEndings, ending_of(file)) != kPictureEndings.end();
}
bool is_video(const fs::path& file) {
  return std::ranges::find(kVideoEndings, ending_of(file)) != kVideoEndings.end();
}
bool is_ppm(const fs::path& file) { return ending_of(file) == ".ppm"; }

Error wrong(const std::string& subject, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = subject};
}

/// Videos of a folder by their names, where that of pictures is their folder's.
Result<void> add_folder(const std::string& folder, std::vector<VideoFiles>& videos) {
  const auto files = files_below(folder);
  if (!files) return files.error();
  std::map<fs::path, VideoFiles> by_name;
  for (const auto& file : *files) {
    if (is_video(file)) by_name[file].files = {file};
    if (is_picture(file)) by_name[file.parent_path()].files.push_back(file);
  }
  for (auto& [name, video] : by_name) {
    video.folder = folder;
    videos.push_back(std::move(video));
  }
  return {};
}

/// Opens a picture when it is read: there may be a million of them.
class Pictures final : public Video {
 public:
  using Open = std::function<Result<std::unique_ptr<Video>>(const fs::path&)>;
  Pictures(std::vector<fs::path> files, const VideoShape& of_first, Open open)
      : files_(std::move(files)), of_first_(of_first), open_(std::move(open)) {}

  VideoShape shape() const override {
    return {.frames = static_cast<std::int64_t>(files_.size()),
            .height = of_first_.height,
            .width = of_first_.width};
  }

  Result<void> read(std::span<const std::int64_t> frames, std::span<std::byte> rgb) const override {
    return read_part(frames, {.height = of_first_.height, .width = of_first_.width}, rgb);
  }

  Result<void> read_part(std::span<const std::int64_t> frames, const VideoPart& part,
                         std::span<std::byte> rgb) const override {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const auto& file = files_[static_cast<std::size_t>(frames[i])];
      const auto picture = open_(file);
      if (!picture) return picture.error();
      const auto shape = (*picture)->shape();
      if (shape.height != of_first_.height || shape.width != of_first_.width)
        return wrong(file.string(), "is " + size_text(shape) +
                                        ", and the first picture of its folder " +
                                        size_text(of_first_));
      constexpr std::int64_t kOnly[] = {0};
      const auto place = rgb.subspan(i * part.bytes(), part.bytes());
      if (auto read = (*picture)->read_part(kOnly, part, place); !read) return read;
    }
    return {};
  }

 private:
  static std::string size_text(const VideoShape& shape) {
    return std::to_string(shape.width) + " x " + std::to_string(shape.height);
  }

  const std::vector<fs::path> files_;
  const VideoShape of_first_;
  const Open open_;
};

}  // namespace

bool VideoFiles::are_pictures() const { return files.size() > 1 || is_picture(files.front()); }

std::string VideoFiles::name() const {
  const auto& first = files.front();
  return (files.size() > 1 ? first.parent_path() : first).string();
}

Result<std::vector<VideoFiles>> find_videos(const std::vector<std::string>& paths,
                                            const std::string& flag) {
  std::vector<VideoFiles> videos;
  for (const auto& path : paths) {
    std::error_code unreadable;
    const auto status = fs::status(path, unreadable);
    if (status.type() == fs::file_type::none) return read_error(path, unreadable.value());
    if (!fs::exists(status))
      return wrong(flag + " " + path,
                   "is not there; it must be a folder of videos or pictures, or a video, on every "
                   "node: is the volume mounted?");
    const auto before = videos.size();
    if (!fs::is_directory(status)) {
      videos.push_back({.files = {path}});
    } else if (auto added = add_folder(path, videos); !added) {
      return added.error();
    }
    if (videos.size() == before)
      return wrong(flag + " " + path,
                   "holds no video (.mp4, .mkv, .webm, .mov, .avi, ...) and no picture (.ppm, "
                   ".png, .jpg, .webp, .bmp); is it the right folder, and its volume mounted?");
  }
  return videos;
}

fs::path VideoOpener::default_plugin() { return default_video_plugin(); }

Result<void> VideoOpener::prepare_for(const std::vector<VideoFiles>& videos) {
  const bool is_needed = std::ranges::any_of(
      videos, [](const VideoFiles& video) { return !std::ranges::all_of(video.files, is_ppm); });
  if (!is_needed || plugin_ != nullptr) return {};
  const auto plugin = load_video_plugin(plugin_path_);
  if (!plugin) return plugin.error();
  auto decoder = configure_videos(**plugin, reading_);
  if (!decoder) return decoder.error();
  decoder_ = std::move(*decoder);
  plugin_ = *plugin;
  return {};
}

const VideoPlugin& VideoOpener::plugin() const {
  TJ_CHECK(plugin_ != nullptr, "the plug-in is loaded where a file needs it");
  return *plugin_;
}

Result<std::unique_ptr<Video>> VideoOpener::open_file(const fs::path& file) const {
  return is_ppm(file) ? open_ppm_picture(file) : open_video(plugin(), file);
}

Result<std::unique_ptr<Video>> VideoOpener::open(const VideoFiles& video) const {
  auto first = open_file(video.files.front());
  if (!first || video.files.size() == 1) return first;
  return std::unique_ptr<Video>(std::make_unique<Pictures>(
      video.files, (*first)->shape(),
      [copy = *this](const fs::path& file) { return copy.open_file(file); }));
}

std::unique_ptr<Video> VideoOpener::open_known(const VideoFiles& video,
                                               const VideoFacts& facts) const {
  return known_video(plugin(), video.files.front(), facts);
}

Result<VideoFacts> VideoOpener::scan(const VideoFiles& video) const {
  return scan_video(plugin(), video.files.front());
}

}  // namespace tj::trainer
