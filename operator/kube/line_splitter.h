// Turns the chunks of a stream into its lines; a line may come in many chunks, a chunk may hold
// many.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tj {

class LineSplitter {
 public:
  /// events: empty lines are left out, and one that is too long ends it; text: empty lines count,
  /// and one that is too long comes in pieces.
  enum class Kind { events, text };

  explicit LineSplitter(std::size_t line_bytes_max, Kind kind = Kind::events)
      : line_bytes_max_(line_bytes_max), is_text_(kind == Kind::text) {}

  /// The lines that `chunk` completes, without their ends.
  std::vector<std::string> feed(std::string_view chunk) {
    std::vector<std::string> lines;
    while (!too_long_) {
      const std::size_t end = chunk.find('\n');
      const std::string_view part = chunk.substr(0, end);
      const std::size_t room = line_bytes_max_ - rest_.size();
      if (is_text_ && part.size() > room) {
        lines.push_back(rest_.append(part.substr(0, room)));
        rest_.clear();
        chunk.remove_prefix(room);
        continue;
      }
      too_long_ = rest_.size() + part.size() > line_bytes_max_;
      if (too_long_) break;
      rest_ += part;
      if (end == std::string_view::npos) break;
      if (!rest_.empty() && rest_.back() == '\r') rest_.pop_back();
      if (is_text_ || !rest_.empty()) lines.push_back(std::move(rest_));
      rest_ = {};
      chunk.remove_prefix(end + 1);
    }
    return lines;
  }
  /// A line passed the bound: nothing that comes after it can be believed.
  bool too_long() const { return too_long_; }
  /// The stream ended within a line.
  bool inside_line() const { return !rest_.empty(); }
  /// What has come of the last line.
  std::string take_rest() { return std::exchange(rest_, {}); }

 private:
  std::size_t line_bytes_max_;
  bool is_text_;
  std::string rest_;
  bool too_long_ = false;
};

}  // namespace tj
