#include "cli/logs/log_line.h"

#include <array>
#include <charconv>
#include <cstdio>

#include "operator/api/types.h"

namespace tj {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kStampBytesMax = 40;  // "2026-11-21T01:10:40.123456789+01:00" has 35
constexpr std::size_t kFractionDigits = 9;
constexpr std::size_t kWholeBytes = 19;  // "2026-11-21T01:10:40"

/// The digits after the point as nanoseconds; `rest` goes on behind them.
nanoseconds take_fraction(std::string_view& rest) {
  if (!rest.starts_with('.')) return nanoseconds{0};
  rest.remove_prefix(1);
  long long value = 0;
  std::size_t digits = 0;
  while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
    if (digits < kFractionDigits) value = value * 10 + (rest.front() - '0');
    if (digits < kFractionDigits) ++digits;
    rest.remove_prefix(1);
  }
  for (; digits < kFractionDigits; ++digits) value *= 10;
  return nanoseconds{value};
}

/// Lines of one second follow each other: what they share is read once.
std::optional<LogTime> whole_seconds(std::string_view text, std::string_view zone) {
  thread_local std::string last_text;
  thread_local std::optional<LogTime> last_time;
  const bool is_known = last_text.size() == text.size() + zone.size() &&
                        last_text.starts_with(text) && last_text.ends_with(zone);
  if (is_known) return last_time;
  last_text = std::string(text).append(zone);
  const auto parsed = parse_time(last_text);
  last_time = parsed ? std::optional<LogTime>(*parsed) : std::nullopt;
  return last_time;
}

std::optional<std::chrono::seconds> unit_of(char letter) {
  switch (letter) {
    case 's': return std::chrono::seconds{1};
    case 'm': return std::chrono::minutes{1};
    case 'h': return std::chrono::hours{1};
    case 'd': return std::chrono::days{1};
    default: return std::nullopt;
  }
}

}  // namespace

StampedLine split_stamp(std::string_view line) {
  const StampedLine whole{std::nullopt, line};
  const auto space = line.substr(0, kStampBytesMax).find(' ');
  const bool may_be_stamp = space != std::string_view::npos && space > kWholeBytes &&
                            line.front() >= '0' && line.front() <= '9';
  if (!may_be_stamp) return whole;
  std::string_view rest = line.substr(kWholeBytes, space - kWholeBytes);
  const nanoseconds fraction = take_fraction(rest);
  const auto seconds = whole_seconds(line.substr(0, kWholeBytes), rest);
  if (!seconds) return whole;
  return {*seconds + fraction, line.substr(space + 1)};
}

std::string format_log_time(LogTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  std::array<char, 16> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%09lld",
                static_cast<long long>((time - seconds).count()));
  std::string text = format_time(seconds);
  return text.insert(text.size() - 1, fraction.data());
}

std::optional<std::chrono::seconds> parse_age(std::string_view text) {
  constexpr std::chrono::seconds kAgeMax = std::chrono::days{36'500};
  if (text.empty()) return std::nullopt;
  std::chrono::seconds age{0};
  while (!text.empty()) {
    long long count = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), count);
    const auto length = static_cast<std::size_t>(read.ptr - text.data());
    if (read.ec != std::errc{} || count < 0 || length == text.size()) return std::nullopt;
    const auto unit = unit_of(text[length]);
    if (!unit || count > kAgeMax / *unit) return std::nullopt;
    age += count * *unit;
    if (age > kAgeMax) return std::nullopt;
    text.remove_prefix(length + 1);
  }
  return age;
}

}  // namespace tj
