// Turns the chunks of a stream into its lines; a line may come in many chunks, a chunk may hold
// many.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tj {

class LineSplitter {
 public:
  explicit LineSplitter(std::size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  /// The lines that `chunk` completes, without their ends; empty ones are left out.
  std::vector<std::string> feed(std::string_view chunk) {
    std::vector<std::string> lines;
    while (!too_long_) {
      const std::size_t end = chunk.find('\n');
      const std::string_view part = chunk.substr(0, end);
      too_long_ = rest_.size() + part.size() > line_bytes_max_;
      if (too_long_) break;
      rest_ += part;
      if (end == std::string_view::npos) break;
      if (!rest_.empty() && rest_.back() == '\r') rest_.pop_back();
      if (!rest_.empty()) lines.push_back(std::move(rest_));
      rest_ = {};
      chunk.remove_prefix(end + 1);
    }
    return lines;
  }
  /// A line passed the bound: nothing that comes after it can be believed.
  bool too_long() const { return too_long_; }
  /// The stream ended within a line.
  bool inside_line() const { return !rest_.empty(); }

 private:
  std::size_t line_bytes_max_;
  std::string rest_;
  bool too_long_ = false;
};

}  // namespace tj
