// RFC 3339 and back, in UTC: the times of metadata and status.
#include <array>
#include <charconv>
#include <cstdio>

#include "operator/api/types.h"

namespace tj {
namespace {

using std::chrono::days;
using std::chrono::milliseconds;

/// Reads exactly `width` digits at `pos` and moves it on.
std::optional<int> digits(const std::string& text, std::size_t& pos, std::size_t width) {
  if (pos + width > text.size()) return std::nullopt;
  int value = 0;
  const char* first = text.data() + pos;
  const auto [end, failure] = std::from_chars(first, first + width, value);
  if (failure != std::errc{} || end != first + width || value < 0) return std::nullopt;
  pos += width;
  return value;
}

/// Reads `.123456` if it is there: the part of a second in milliseconds.
int fraction_ms(const std::string& text, std::size_t& pos) {
  if (pos >= text.size() || text[pos] != '.') return 0;
  int value_ms = 0;
  int weight = 100;
  for (++pos; pos < text.size() && text[pos] >= '0' && text[pos] <= '9'; ++pos) {
    value_ms += (text[pos] - '0') * weight;
    weight /= 10;
  }
  return value_ms;
}

/// Reads `Z` or `+hh:mm` at the end of the text.
std::optional<std::chrono::minutes> offset(const std::string& text, std::size_t pos) {
  if (pos >= text.size()) return std::nullopt;
  if (text[pos] == 'Z' || text[pos] == 'z') {
    return pos + 1 == text.size() ? std::optional(std::chrono::minutes{0}) : std::nullopt;
  }
  const int sign = text[pos] == '-' ? -1 : 1;
  if (text[pos] != '+' && text[pos] != '-') return std::nullopt;
  ++pos;
  const auto hours = digits(text, pos, 2);
  if (!hours || pos >= text.size() || text[pos] != ':') return std::nullopt;
  ++pos;
  const auto minutes = digits(text, pos, 2);
  if (!minutes || pos != text.size()) return std::nullopt;
  return std::chrono::minutes{sign * (*hours * 60 + *minutes)};
}

}  // namespace

std::string format_time(TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<days>(seconds);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{seconds - day};
  std::array<char, 40> text{};
  const int length = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()));
  return std::string(text.data(), static_cast<std::size_t>(length));
}

std::optional<TimePoint> parse_time(const std::string& text) {
  std::size_t pos = 0;
  std::array<int, 6> part{};
  constexpr std::array<std::size_t, 6> kWidths = {4, 2, 2, 2, 2, 2};
  constexpr std::string_view kSeparators = "--T::";
  for (std::size_t i = 0; i < part.size(); ++i) {
    const auto value = digits(text, pos, kWidths[i]);
    if (!value) return std::nullopt;
    part[i] = *value;
    if (i == kSeparators.size()) break;
    if (pos >= text.size() || text[pos] != kSeparators[i]) return std::nullopt;
    ++pos;
  }
  const std::chrono::year_month_day date{std::chrono::year{part[0]},
                                         std::chrono::month{static_cast<unsigned>(part[1])},
                                         std::chrono::day{static_cast<unsigned>(part[2])}};
  const bool clock_ok = part[3] < 24 && part[4] < 60 && part[5] <= 60;
  const int ms = fraction_ms(text, pos);
  const auto shift = offset(text, pos);
  if (!date.ok() || !clock_ok || !shift) return std::nullopt;
  return std::chrono::sys_days{date} + std::chrono::hours{part[3]} + std::chrono::minutes{part[4]} +
         std::chrono::seconds{part[5]} + milliseconds{ms} - *shift;
}

}  // namespace tj
