// How far one container's log has been read, so that a stream which broke goes on without losing or
// repeating a line. Pure.
//
// A kubelet can be asked for what was written since a time, in whole seconds; so a new stream
// begins with lines that are known. Every line of the last second or two is remembered by its full
// timestamp and its text, and how often it came. Of a new stream, what is remembered is taken away
// one by one; the first line that is later than all that was known ends that. Two equal lines of
// the same nanosecond are two lines.
//
// What this can't know: lines that the kubelet has rotated away while nobody was connected are
// gone; a clock of the node that was set back by more than kOverlap while the stream was broken
// hides the lines between; of more than kRememberedMax lines in that time, the oldest are told by
// their time alone.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cli/logs/log_line.h"

namespace tj {

class ResumePoint {
 public:
  static constexpr std::size_t kRememberedMax = 65'536;
  /// stdout and stderr are stamped by two threads of the runtime: their order in the file may be
  /// another than that of their times, by far less than this.
  static constexpr std::chrono::seconds kOverlap{1};

  /// Of a log of which only the last lines are wanted, what is older than the first that came is
  /// not new.
  explicit ResumePoint(bool is_tail = false) : is_tail_(is_tail) {}

  /// From when on a new stream must be asked for what was written: a whole second. Absent: nothing
  /// has been read yet.
  std::optional<LogTime> since() const;
  /// A new stream of the same log begins.
  void stream_begins();
  /// Whether this line of the stream is new; it is known from then on.
  bool take(LogTime time, std::string_view text);
  std::optional<LogTime> newest() const { return newest_; }

 private:
  struct Seen {
    LogTime time;
    std::uint64_t key = 0;
  };
  bool is_known(LogTime time, std::uint64_t key);
  void remember(LogTime time, std::uint64_t key);

  bool is_tail_;
  std::deque<Seen> seen_;  // since since(), in the order in which they came
  std::optional<LogTime> first_;
  std::optional<LogTime> newest_;
  std::optional<LogTime> forgotten_until_;           // of lines that kRememberedMax has pushed out
  std::unordered_map<std::uint64_t, int> expected_;  // of this stream: known lines still to come
  std::optional<LogTime> expected_until_;            // absent: all that comes is new
};

}  // namespace tj
