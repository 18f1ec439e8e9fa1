#include "trainer/data/lerobot/lerobot_info.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "trainer/data/lerobot/json_place.h"
#include "trainer/process/data_file.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kInfoBytesMax = 16 << 20;
constexpr std::int64_t kExtentMax = 1'000'000'000;
constexpr std::size_t kShapeMax = 8;
constexpr int kPadMax = 20;  // digits of a number in a path

Error wrong(std::string what, std::string subject = {}) {
  return {.code = Code::invalid, .message = std::move(what), .subject = std::move(subject)};
}

LeRobotFeature feature_from(const JsonPlace& json) {
  LeRobotFeature feature{.dtype = json.at("dtype").text(), .shape = {}};
  json.at("shape").each(
      [&](const JsonPlace& extent) { feature.shape.push_back(extent.integer(1, kExtentMax)); });
  if (feature.shape.size() > kShapeMax) throw json.at("shape").wrong("has too many extents");
  return feature;
}

LeRobotLayout layout_from(const JsonPlace& version) {
  const auto text = version.text();
  if (text == "v2.0" || text == "v2.1") return LeRobotLayout::file_per_episode;
  if (text.starts_with("v3.")) return LeRobotLayout::shared_files;
  throw version.wrong(
      "must be v2.0, v2.1 or v3.x (LeRobot's lerobot/datasets/v21 and v30 convert older ones)");
}

LeRobotInfo info_from(const JsonPlace& json) {
  const auto version = json.at("codebase_version");
  LeRobotInfo info{.version = version.text(), .layout = layout_from(version)};
  info.fps = json.at("fps").number();
  if (!(info.fps > 0 && info.fps <= 10'000)) throw json.at("fps").wrong("must be above 0");
  info.episodes = json.at("total_episodes").integer(1, kLeRobotEpisodesMax);
  info.frames = json.at("total_frames").integer(1, kLeRobotFramesMax);
  if (json.has("chunks_size")) info.chunk_size = json.at("chunks_size").integer(1, kExtentMax);
  info.data_path = json.at("data_path").text();
  if (json.has("video_path")) info.video_path = json.at("video_path").text();
  const auto features = json.at("features");
  if (!features.value().is_object()) throw features.wrong("must be an object");
  for (const auto& [name, value] : features.value().items())
    info.features[name] = feature_from(features.at(name));
  return info;
}

bool has_file_like(const fs::path& folder, std::string_view part) {
  std::error_code failure;
  int looked_at = 0;
  constexpr int kLookedAtMax = 1000;
  for (fs::recursive_directory_iterator each(folder, failure), end; each != end && !failure;
       each.increment(failure)) {
    if (++looked_at > kLookedAtMax) return false;
    if (each->path().filename().string().find(part) != std::string::npos) return true;
  }
  return false;
}

/// What a folder that is no LeRobot data set holds, and what becomes of it.
std::string other_format(const fs::path& folder) {
  const std::string conversion =
      "; LeRobot's Python makes a data set of it: LeRobotDataset.create(), then add_frame() and "
      "save_episode() over its episodes";
  if (has_file_like(folder, ".tfrecord"))
    return "holds RLDS or TFDS records" + conversion +
           ", which tfds.load() reads (openpi's examples/libero/convert_libero_data_to_lerobot.py "
           "is such a program)";
  if (has_file_like(folder, ".tar")) return "holds archives, as of WebDataset" + conversion;
  if (has_file_like(folder, ".hdf5") || has_file_like(folder, ".h5"))
    return "holds HDF5 files" + conversion +
           " (openpi's examples/aloha_real/convert_aloha_data_to_lerobot.py is such a program)";
  return "is no LeRobot data set: it has no meta/info.json; is it the right folder, and its volume "
         "mounted?";
}

/// "{name}" or "{name:03d}" at the begin of `rest`, which it is taken from.
std::string filled_field(std::string_view& rest, const std::map<std::string, PathValue>& values) {
  const auto end = rest.find('}');
  if (end == std::string_view::npos) throw std::runtime_error("has a { without a }");
  const std::string field(rest.substr(1, end - 1));
  rest.remove_prefix(end + 1);
  const auto colon = field.find(':');
  const auto found = values.find(field.substr(0, colon));
  if (found == values.end()) throw std::runtime_error("has a field {" + field + "} of no meaning");
  if (const auto* const text = std::get_if<std::string>(&found->second)) {
    if (colon == std::string::npos) return *text;
    throw std::runtime_error("has {" + field + "}, and the field is text");
  }
  int width = 0;
  if (colon != std::string::npos) {
    char letter = 0, rest_of_form = 0;
    const auto form = field.substr(colon + 1);
    const int read = std::sscanf(form.c_str(), "0%2d%c%c", &width, &letter, &rest_of_form);
    if (read != 2 || letter != 'd' || width < 0 || width > kPadMax)
      throw std::runtime_error("has {" + field + "}; the form must be like 03d");
  }
  char digits[40];
  std::snprintf(digits, sizeof digits, "%0*lld", width,
                static_cast<long long>(std::get<std::int64_t>(found->second)));
  return digits;
}

bool leads_out(const fs::path& path) {
  return path.empty() || path.is_absolute() ||
         std::ranges::any_of(path, [](const fs::path& part) { return part == ".."; });
}

}  // namespace

std::int64_t LeRobotFeature::width() const {
  std::int64_t width = 1;
  for (const auto extent : shape) {
    if (width > kExtentMax) return width;  // more than anyone takes, and it must not overflow
    width *= extent;
  }
  return width;
}

std::vector<std::string> LeRobotInfo::cameras() const {
  std::vector<std::string> names;
  for (const auto& [name, feature] : features)
    if (feature.is_camera()) names.push_back(name);
  return names;
}

std::string LeRobotInfo::vectors_text() const {
  constexpr std::size_t kNamedMax = 20;
  std::string text;
  std::size_t count = 0;
  for (const auto& [name, feature] : features) {
    if (!feature.dtype.starts_with("float") || name == "timestamp") continue;
    if (++count > kNamedMax) continue;
    text += (count > 1 ? ", " : "") + name + " (" + std::to_string(feature.width()) + ")";
  }
  if (count > kNamedMax) text += " and " + std::to_string(count - kNamedMax) + " more";
  return text.empty() ? "none" : text;
}

Result<LeRobotInfo> lerobot_info_from(std::string_view json) try {
  const auto document = nlohmann::json::parse(json, nullptr, false);
  if (document.is_discarded()) return wrong("is no JSON");
  return info_from(JsonPlace(document, ""));
} catch (const std::exception& failure) {
  return wrong(failure.what());
}

Result<LeRobotInfo> read_lerobot_info(const fs::path& folder, const std::string& flag) {
  const auto subject = flag + " " + folder.string();
  std::error_code failure;
  const auto status = fs::status(folder, failure);
  if (status.type() == fs::file_type::none) return read_error(folder, failure.value());
  if (!fs::exists(status))
    return wrong(
        "is not there; it must be the folder of a LeRobot data set, on every node: is "
        "the volume mounted?",
        subject);
  if (!fs::is_directory(status))
    return wrong("is a file; it must be the folder of a LeRobot data set", subject);
  const auto file = folder / "meta" / "info.json";
  if (!fs::exists(file, failure)) return wrong(other_format(folder), subject);
  const auto text = read_small_file(file, kInfoBytesMax);
  if (!text) return text.error();
  auto info = lerobot_info_from(*text);
  if (!info) return wrong(info.error().message, file.string());
  return info;
}

Result<std::string> filled_path(std::string_view pattern,
                                const std::map<std::string, PathValue>& values) try {
  std::string path;
  for (auto rest = pattern; !rest.empty();) {
    if (rest.front() == '{') {
      path += filled_field(rest, values);
    } else {
      path += rest.front();
      rest.remove_prefix(1);
    }
  }
  if (leads_out(path)) throw std::runtime_error("leads out of the data set");
  return path;
} catch (const std::exception& failure) {
  return wrong("the path \"" + std::string(pattern) + "\" " + failure.what());
}

}  // namespace tj::trainer
