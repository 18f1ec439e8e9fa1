// A log file of a local run, read line by line while somebody may still write to it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace tj {

class LogFile {
 public:
  /// A longer line comes in pieces of this.
  static constexpr std::size_t kLineBytesMax = 1024 * 1024;

  explicit LogFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Begins where the last `lines` lines begin that are there now.
  void seek_to_tail(std::int64_t lines);
  /// Up to `lines_max` further lines; false: there are no whole ones any more. With `is_final` the
  /// end of the file ends a line, too.
  bool read(std::size_t lines_max, bool is_final,
            const std::function<void(std::string_view line)>& on_line);

 private:
  bool fill();

  std::filesystem::path path_;
  std::uint64_t offset_ = 0;  // of what has been read from the file
  std::string rest_;          // read, and not given yet
};

}  // namespace tj
