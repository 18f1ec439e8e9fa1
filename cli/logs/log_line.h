// A line of a container's log as a kubelet sends it when it is asked for timestamps: the time at
// which the container's runtime read it, a space, and the text. Pure.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tj {

using LogTime = std::chrono::sys_time<std::chrono::nanoseconds>;

struct StampedLine {
  std::optional<LogTime> time;  // absent: no timestamp stands before it, `text` is all of it
  std::string_view text;        // lives as long as the line
};

StampedLine split_stamp(std::string_view line);

/// "2026-11-21T01:10:40.000000001Z": RFC 3339 with nine digits, as a kubelet writes it.
std::string format_log_time(LogTime time);

/// "30s", "5m", "2h", "3d", or several of them ("1h30m"): how long. Absent: it is no such text.
std::optional<std::chrono::seconds> parse_age(std::string_view text);

}  // namespace tj
