#include "trainer/data/video/frame_rate.h"

#include <charconv>
#include <cstdint>

namespace tj::trainer {
namespace {

constexpr std::int64_t kExtreme = 1000;  // frames in a second, or seconds for a frame

std::optional<int> whole_from(std::string_view text) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

bool FrameRate::is_known() const {
  if (numerator < 1 || denominator < 1) return false;
  return numerator <= kExtreme * denominator && denominator <= kExtreme * numerator;
}

std::string to_string(const FrameRate& rate) {
  const auto text = std::to_string(rate.numerator);
  return rate.denominator == 1 ? text : text + "/" + std::to_string(rate.denominator);
}

std::optional<FrameRate> frame_rate_from(std::string_view text) {
  const auto slash = text.find('/');
  const auto numerator = whole_from(text.substr(0, slash));
  const auto denominator =
      slash == std::string_view::npos ? std::optional(1) : whole_from(text.substr(slash + 1));
  if (!numerator || !denominator) return std::nullopt;
  const FrameRate rate{.numerator = *numerator, .denominator = *denominator};
  return rate.is_known() ? std::optional(rate) : std::nullopt;
}

}  // namespace tj::trainer
