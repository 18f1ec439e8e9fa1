// What parts of a data set were found to hold, noted line by line while statistics are made: after
// `kill -9` the same command goes on with the parts that are missing. A line that is cut off, or of
// other data, counts for nothing.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/data/lerobot/exact_statistics.h"
#include "trainer/process/unique_fd.h"

namespace tj::trainer {

/// Of each dimension: those of the state, then those of the action.
using FirstPasses = std::vector<FirstPass>;
using SecondPasses = std::vector<SecondPass>;

std::string note_of(const std::string& key, std::size_t part, const FirstPasses& found);
std::string note_of(const std::string& key, std::size_t part, const SecondPasses& found);

class StatisticsNotes {
 public:
  /// Reads what is there of `key`, which says of what data and rules it is, and locks the file, so
  /// that no other process writes there. `widths`: how many dimensions there are. Fails as the disk
  /// says, or with Code::conflict.
  static Result<std::unique_ptr<StatisticsNotes>> open(const std::filesystem::path& file,
                                                       std::string key, std::size_t dimensions);

  /// By part.
  std::map<std::size_t, FirstPasses> first;
  std::map<std::size_t, SecondPasses> second;

  Result<void> write(std::size_t part, const FirstPasses& found);
  Result<void> write(std::size_t part, const SecondPasses& found);
  /// Once all of it is elsewhere.
  void remove();

 private:
  StatisticsNotes(std::filesystem::path file, std::string key, UniqueFd descriptor)
      : file_(std::move(file)), key_(std::move(key)), descriptor_(std::move(descriptor)) {}
  void read(std::size_t dimensions);
  Result<void> write_line(std::string_view line);

  std::filesystem::path file_;
  std::string key_;
  UniqueFd descriptor_;  // locked; the kernel gives it back however this process ends
  std::mutex mutex_;     // guards the writing
};

}  // namespace tj::trainer
