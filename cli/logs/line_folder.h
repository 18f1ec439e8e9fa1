// Folds equal lines of many ranks into one: "[0-15] loading data". Pure; time is an argument.
//
// A line waits for the others of its text for at most `delay`, and goes at once when every rank has
// said it. Lines go in the order in which the first rank said them, and the lines of one rank stay
// in their order: a rank joins a waiting line only if that stands behind its own last one. Nothing
// is lost and nothing said twice: the ranks of all lines that go are as many as the lines that
// came.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cli/logs/log_line.h"
#include "operator/api/rank_set.h"

namespace tj {

struct FoldedLine {
  RankSet ranks;
  LogTime time;  // of the first of them
  std::string text;
};

/// Of the lines that wait.
struct FoldBounds {
  std::chrono::milliseconds delay{300};  // 0: nothing is folded
  std::size_t lines_max = 8'192;
  std::size_t bytes_max = 4 * 1024 * 1024;
};

class LineFolder {
 public:
  using Emit = std::function<void(const FoldedLine& line)>;

  LineFolder(FoldBounds bounds, Emit emit) : bounds_(bounds), emit_(std::move(emit)) {}

  /// So many may say the same: a line that all of them have said waits no longer.
  void set_rank_count(int count) { rank_count_ = count; }
  /// `now` is the time by which `delay` is measured: the clock, or the times of the lines.
  void add(int rank, LogTime time, std::string_view text, LogTime now);
  /// What has waited for long enough goes.
  void advance(LogTime now);
  std::optional<LogTime> next_due() const;
  void flush();

 private:
  struct Waiting {
    FoldedLine line;
    LogTime since;
  };
  Waiting& at(std::uint64_t number) { return waiting_[number - first_]; }
  std::optional<std::uint64_t> find(int rank, std::string_view text) const;
  void append(int rank, LogTime time, std::string_view text, LogTime now);
  void emit_first();
  bool is_first_complete() const;
  bool is_too_much() const;

  FoldBounds bounds_;
  Emit emit_;
  int rank_count_ = 0;
  std::deque<Waiting> waiting_;
  std::uint64_t first_ = 0;  // the number of the first that waits; they are counted
  std::size_t bytes_ = 0;
  std::unordered_map<std::string_view, std::uint64_t> by_text_;  // the last of each text
  std::unordered_map<int, std::uint64_t> last_of_rank_;
};

}  // namespace tj
