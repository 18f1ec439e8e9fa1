#include "trainer/data/lerobot/statistics_notes.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trainer/values/json_integer.h"

namespace tj::trainer {
namespace {
using nlohmann::json;

/// The bits of a double, so that what is read is what was written.
std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }
double from_bits(const json& value) {
  const auto number = std::bit_cast<double>(integer_of<std::uint64_t>(value));
  if (!std::isfinite(number)) throw std::runtime_error("is not finite");
  return number;
}

json to_json(const HalfCounts& counts) {
  auto list = json::array();
  for (const auto& [half, count] : counts) {
    list.push_back(half);
    list.push_back(count);
  }
  return list;
}
HalfCounts counts_from(const json& list) {
  HalfCounts counts;
  for (std::size_t i = 0; i + 1 < list.size(); i += 2) {
    const auto count = integer_of<std::int64_t>(list[i + 1]);
    if (count < 1 || count > (std::int64_t{1} << 50)) throw std::runtime_error("is no count");
    counts[integer_of<std::uint16_t>(list[i])] = count;
  }
  return counts;
}

json to_json(const FirstPass& found) {
  return {found.count, bits_of(found.sum), found.least, found.greatest, to_json(found.upper)};
}
FirstPass first_from(const json& list) {
  FirstPass found{.count = integer_of<std::int64_t>(list.at(0)), .sum = from_bits(list.at(1))};
  found.least = integer_of<std::uint32_t>(list.at(2));
  found.greatest = integer_of<std::uint32_t>(list.at(3));
  found.upper = counts_from(list.at(4));
  std::int64_t counted = 0;
  for (const auto& [half, count] : found.upper) counted += count;
  if (counted != found.count || counted < 1) throw std::runtime_error("does not add up");
  return found;
}

json to_json(const SecondPass& found) {
  auto lower = json::array();
  for (const auto& [bucket, counts] : found.lower) lower.push_back({bucket, to_json(counts)});
  return {bits_of(found.squares), lower};
}
SecondPass second_from(const json& list) {
  SecondPass found{.squares = from_bits(list.at(0))};
  for (const auto& bucket : list.at(1))
    found.lower[integer_of<std::uint16_t>(bucket.at(0))] = counts_from(bucket.at(1));
  return found;
}

template <typename Pass>
std::string line_of(const std::string& key, std::size_t part, const std::vector<Pass>& found) {
  auto dimensions = json::array();
  for (const auto& each : found) dimensions.push_back(to_json(each));
  constexpr int kPass = std::is_same_v<Pass, FirstPass> ? 1 : 2;
  return json{{"key", key}, {"pass", kPass}, {"part", part}, {"found", dimensions}}.dump();
}

}  // namespace

std::string note_of(const std::string& key, std::size_t part, const FirstPasses& found) {
  return line_of(key, part, found);
}
std::string note_of(const std::string& key, std::size_t part, const SecondPasses& found) {
  return line_of(key, part, found);
}

Result<std::unique_ptr<StatisticsNotes>> StatisticsNotes::open(const std::filesystem::path& file,
                                                               std::string key,
                                                               std::size_t dimensions) {
  UniqueFd descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!descriptor.open())
    return Error{.code = errno == EACCES || errno == EROFS ? Code::forbidden : Code::unavailable,
                 .message = std::string("can't be written: ") + std::strerror(errno),
                 .subject = file.string()};
  if (::flock(descriptor.value(), LOCK_EX | LOCK_NB) != 0)
    return Error{.code = Code::conflict,
                 .message = "another trainer prepare is at work there",
                 .subject = file.parent_path().string()};
  auto notes = std::unique_ptr<StatisticsNotes>(
      new StatisticsNotes(file, std::move(key), std::move(descriptor)));
  notes->read(dimensions);
  if (auto ended = notes->write_line("\n"); !ended) return ended.error();  // of a line that was cut
  return notes;
}

void StatisticsNotes::read(std::size_t dimensions) {
  std::ifstream lines(file_);
  std::string line;
  while (std::getline(lines, line)) {
    try {
      const auto note = json::parse(line);
      const auto& found = note.at("found");
      if (note.at("key") != key_ || found.size() != dimensions) continue;
      const auto part = integer_of<std::size_t>(note.at("part"));
      FirstPasses of_first;
      SecondPasses of_second;
      const bool is_first = note.at("pass") == 1;
      for (const auto& each : found) {
        if (is_first)
          of_first.push_back(first_from(each));
        else
          of_second.push_back(second_from(each));
      }
      if (is_first)
        first[part] = std::move(of_first);
      else
        second[part] = std::move(of_second);
    } catch (const std::exception&) {  // cut off, or of nobody
    }
  }
}

Result<void> StatisticsNotes::write_line(std::string_view rest) {
  const std::scoped_lock lock(mutex_);
  while (!rest.empty()) {
    const auto written = ::write(descriptor_.value(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      return Error{.code = Code::unavailable,
                   .message = std::string("can't be written: ") + std::strerror(errno),
                   .subject = file_.string()};
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> StatisticsNotes::write(std::size_t part, const FirstPasses& found) {
  return write_line(note_of(key_, part, found) + "\n");
}
Result<void> StatisticsNotes::write(std::size_t part, const SecondPasses& found) {
  return write_line(note_of(key_, part, found) + "\n");
}

void StatisticsNotes::remove() {
  std::error_code failure;
  std::filesystem::remove(file_, failure);
}

}  // namespace tj::trainer
