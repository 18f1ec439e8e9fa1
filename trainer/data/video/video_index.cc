#include "trainer/data/video/video_index.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "contract/utf8.h"
#include "trainer/process/data_file.h"
#include "trainer/values/json_integer.h"

namespace tj::trainer {
namespace {
using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::size_t kRefusedMax = 100;  // lines that are named
constexpr std::size_t kLineBytesMax = 16 << 20;
constexpr std::size_t kWordsBytesMax = 4096;  // of a name of a codec, or of what is broken

Error unusable(std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = {}};
}

ordered_json to_json(const FrameTimes& times) {
  ordered_json json = {{"start", times.start}};
  if (times.step) {
    json["step"] = {times.step->units, times.step->frames};
    return json;
  }
  auto runs = ordered_json::array();
  for (std::size_t i = 0; i < times.runs.size(); ++i) {
    const auto& run = times.runs[i];
    const auto end = i + 1 < times.runs.size() ? times.runs[i + 1].first_frame : times.frames;
    runs.push_back({end - run.first_frame, run.step, run.time - times.start});
  }
  json["runs"] = std::move(runs);  // frames, from one to the next, where the first is
  return json;
}

template <typename Integer = std::int64_t>
Integer within(const ordered_json& json, const char* what, Integer min, Integer max) {
  const auto value = integer_of<Integer>(json);
  if (value >= min && value <= max) return value;
  throw std::domain_error(std::string("says ") + std::to_string(value) + " for " + what);
}

/// No time is beyond kVideoTimeMax, so that none overflows.
void read_runs(const ordered_json& json, FrameTimes& times) {
  std::int64_t frame = 0, earliest = times.start;
  for (const auto& each : json) {
    const auto count = within<std::int64_t>(each.at(0), "frames", 1, times.frames - frame);
    const auto step = within<std::int64_t>(each.at(1), "a step", 1, 2 * kVideoTimeMax);
    const auto time =
        times.start + within<std::int64_t>(each.at(2), "a time", 0, kVideoTimeMax - times.start);
    const bool is_later = frame == 0 ? time == times.start : time >= earliest;
    const bool fits = count == 1 || step <= (kVideoTimeMax - time) / (count - 1);
    if (!is_later || !fits) throw std::domain_error("says times that don't ascend");
    times.runs.push_back({.first_frame = frame, .time = time, .step = step});
    earliest = time + (count - 1) * step + 1;
    frame += count;
  }
  if (frame != times.frames)
    throw std::domain_error("says " + std::to_string(times.frames) + " frames, and times of " +
                            std::to_string(frame));
}

void read_times(const ordered_json& json, FrameTimes& times) {
  times.start = within(json.at("start"), "start", -kVideoTimeMax, kVideoTimeMax);
  if (!json.contains("step")) return read_runs(json.at("runs"), times);
  const auto& step = json.at("step");
  times.step = {.units = integer_of(step.at(0)), .frames = integer_of(step.at(1))};
  if (!is_usable(*times.step)) throw std::domain_error("says times that don't ascend");
}

void read_keys(const ordered_json& json, FrameTimes& times) {
  if (json.contains("key_every")) {
    times.key_every = within<std::int64_t>(json.at("key_every"), "key_every", 1, times.frames);
    return;
  }
  for (const auto& key : json.at("keys")) {
    const auto least = times.keys.empty() ? 0 : times.keys.back() + 1;
    times.keys.push_back(within<std::int64_t>(key, "a key frame", least, times.frames - 1));
  }
  if (times.keys.empty()) throw std::domain_error("says times, and no key frame");
}

std::string words_of(const ordered_json& json) {
  auto words = json.get<std::string>();
  if (words.size() > kWordsBytesMax) throw std::domain_error("says more than anyone would");
  return words;
}

VideoFacts facts_of(const ordered_json& json, const FileState& state) {
  VideoFacts facts;
  facts.width = within<int>(json.at("width"), "width", 1, kVideoExtentMax);
  facts.height = within<int>(json.at("height"), "height", 1, kVideoExtentMax);
  facts.seconds = json.at("seconds").get<double>();
  if (!(facts.seconds >= 0) || !std::isfinite(facts.seconds))
    throw std::domain_error("says no number of seconds");
  constexpr int kMost = std::numeric_limits<int>::max();
  facts.rate_frames = within<int>(json.at("rate").at(0), "rate", 0, kMost);
  facts.rate_seconds = within<int>(json.at("rate").at(1), "rate", 0, kMost);
  facts.codec = words_of(json.at("codec"));
  // A frame takes a byte, or there is none.
  facts.times.frames =
      within<std::int64_t>(json.at("frames"), "frames", 1, std::min(kVideoFramesMax, state.bytes));
  if (!json.contains("times")) return facts;
  read_times(json.at("times"), facts.times);
  read_keys(json, facts.times);
  return facts;
}

/// Below the folder: no name leads out of it.
bool is_usable_name(const std::string& name) {
  const std::filesystem::path path(name);
  for (const auto& part : path)
    if (part == "..") return false;
  return !name.empty() && name.find('\0') == std::string::npos && path.is_relative();
}

VideoIndexEntry entry_of(const ordered_json& json) {
  VideoIndexEntry entry;
  entry.name = json.at("name").get<std::string>();
  if (!is_usable_name(entry.name)) throw std::domain_error("names no file below the folder");
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  entry.state.bytes = within<std::int64_t>(json.at("bytes"), "bytes", 0, kMost);
  entry.state.modified_ns = integer_of(json.at("modified_ns"));
  if (json.contains("broken")) {
    entry.broken = words_of(json.at("broken"));
    if (entry.broken.empty()) throw std::domain_error("says broken, and not why");
  } else {
    entry.facts = facts_of(json, entry.state);
  }
  return entry;
}

/// False at the end, and for what has no newline: it was being written when its writer ended. Of a
/// line that is too long one byte more than may be.
bool next_line(std::istream& from, std::string& line) {
  line.clear();
  for (char byte = 0; from.get(byte);) {
    if (byte == '\n') return true;
    if (line.size() <= kLineBytesMax) line.push_back(byte);
  }
  return false;
}

}  // namespace

Result<FileState> state_of(const std::filesystem::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return read_error(file, errno);
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return FileState{.bytes = status.st_size,
                   .modified_ns = status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec};
}

std::string index_line(const VideoIndexEntry& entry) {
  ordered_json json = {{"version", kVersion},
                       {"name", entry.name},
                       {"bytes", entry.state.bytes},
                       {"modified_ns", entry.state.modified_ns}};
  if (!entry.broken.empty()) {
    json["broken"] = with_invalid_utf8_replaced(entry.broken);
    return json.dump();
  }
  const auto& facts = entry.facts;
  json["frames"] = facts.times.frames;
  json["width"] = facts.width;
  json["height"] = facts.height;
  json["seconds"] = facts.seconds;
  json["rate"] = {facts.rate_frames, facts.rate_seconds};
  json["codec"] = facts.codec;
  if (!facts.times.are_known()) return json.dump();
  json["times"] = to_json(facts.times);
  if (facts.times.key_every > 0) {
    json["key_every"] = facts.times.key_every;
  } else {
    json["keys"] = facts.times.keys;
  }
  return json.dump();
}

Result<VideoIndexEntry> index_entry_from(std::string_view line) {
  try {
    const auto json = ordered_json::parse(line, nullptr, false);
    if (!json.is_object()) return unusable("is no JSON object");
    const auto version = json.contains("version") ? integer_of<int>(json["version"]) : 0;
    if (version != kVersion)
      return unusable("is of version " + std::to_string(version) + ", this program reads " +
                      std::to_string(kVersion));
    return entry_of(json);
  } catch (const nlohmann::json::exception& failure) {
    return unusable(std::string("is not as expected: ") + failure.what());
  } catch (const std::domain_error& failure) {
    return unusable(failure.what());
  }
}

Result<VideoIndex> read_video_index(const std::filesystem::path& file) {
  const auto opened = DataFile::open(file);
  if (!opened) return opened.error();
  VideoIndex index{.file = file, .entries = {}, .refused = {}};
  std::ifstream lines(file, std::ios::binary);
  std::string line;
  for (std::int64_t number = 1; next_line(lines, line); ++number) {
    if (line.empty()) continue;
    auto entry = line.size() > kLineBytesMax ? Result<VideoIndexEntry>(unusable("is too long"))
                                             : index_entry_from(line);
    if (entry) {
      auto name = entry->name;
      index.entries.insert_or_assign(std::move(name), std::move(*entry));
    } else if (index.refused.size() < kRefusedMax) {
      index.refused.push_back("line " + std::to_string(number) + ": " + entry.error().message);
    }
  }
  return index;
}

}  // namespace tj::trainer
