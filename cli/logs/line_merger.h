// Puts the lines of many logs in the order of their times, as they are read: a line goes when no
// log that is still being read can have an earlier one. Pure. The lines of one log keep their
// order, whatever their times say.
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "cli/logs/log_line.h"

namespace tj {

class LineMerger {
 public:
  using Emit = std::function<void(std::size_t source, LogTime time, std::string_view text)>;

  explicit LineMerger(Emit emit) : emit_(std::move(emit)) {}

  /// The number of the new log. All are added before the first line.
  std::size_t add_source();
  void push(std::size_t source, LogTime time, std::string_view text);
  /// It will have no more lines.
  void end(std::size_t source);
  /// What waits of it, as memory: of equal times the log with the lower number goes first.
  std::size_t waiting_bytes(std::size_t source) const { return sources_[source].bytes; }

 private:
  struct Line {
    LogTime time;
    std::string text;
  };
  struct Source {
    std::deque<Line> lines;
    std::size_t bytes = 0;
    LogTime newest{};
    bool has_ended = false;
  };
  struct Head {
    LogTime time;
    std::size_t source = 0;
    auto operator<=>(const Head&) const = default;
  };
  void emit_ready();

  Emit emit_;
  std::vector<Source> sources_;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;
  std::size_t silent_count_ = 0;  // logs being read of which no line waits
};

}  // namespace tj
