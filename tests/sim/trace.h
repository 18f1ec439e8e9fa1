// What happened in a simulated world, line by line: the last lines are kept for a report, all are
// printed on demand, and their digest tells whether two runs were the same.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>

namespace tj::sim {

class Trace {
 public:
  static constexpr std::size_t kLinesMax = 40;

  explicit Trace(bool is_printed) : is_printed_(is_printed) {}

  void set_place(long step, std::chrono::milliseconds time) {
    step_ = step;
    time_ = time;
  }
  void note(const std::string& what) {
    char place[48];
    std::snprintf(place, sizeof place, "%6ld %10.3f s  ", step_,
                  static_cast<double>(time_.count()) / 1000.0);
    lines_.push_back(place + what);
    if (lines_.size() > kLinesMax) lines_.pop_front();
    for (const char letter : lines_.back())
      digest_ = (digest_ ^ static_cast<unsigned char>(letter)) * 1099511628211ull;  // FNV-1a
    if (is_printed_) std::printf("%s\n", lines_.back().c_str());
  }
  const std::deque<std::string>& lines() const { return lines_; }
  std::uint64_t digest() const { return digest_; }

 private:
  bool is_printed_;
  long step_ = 0;
  std::chrono::milliseconds time_{0};
  std::deque<std::string> lines_;
  std::uint64_t digest_ = 14695981039346656037ull;
};

}  // namespace tj::sim
