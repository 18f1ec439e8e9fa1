#include "trainer/watch/limits.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>

#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

struct Named {
  std::string_view name;
  double Limits::*seconds;
};
constexpr Named kLimits[] = {{"start", &Limits::start},
                             {"step", &Limits::step},
                             {"eval", &Limits::eval},
                             {"save", &Limits::save},
                             {"silence", &Limits::silence}};
// The ranks look at each other four times a second: less would end healthy runs.
constexpr double kSecondsMin = 2;

std::optional<double> seconds_from(const std::string& value) {
  char* end = nullptr;
  const double seconds = std::strtod(value.c_str(), &end);
  const bool is_number = !value.empty() && *end == '\0' && std::isfinite(seconds);
  if (!is_number || (seconds != 0 && seconds < kSecondsMin)) return std::nullopt;
  return seconds;
}

}  // namespace

std::optional<double> limit_of(const Limits& limits, Phase phase) {
  double seconds = 0;
  if (phase == Phase::start) seconds = limits.start;
  if (phase == Phase::step) seconds = limits.step;
  if (phase == Phase::eval) seconds = limits.eval;
  if (phase == Phase::save) seconds = limits.save;
  if (seconds == 0) return std::nullopt;
  return seconds;
}

std::optional<Limits> limits_from(const std::string& text) {
  Limits limits;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto equals = part.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const auto named = std::ranges::find(kLimits, part.substr(0, equals), &Named::name);
    const auto seconds = seconds_from(part.substr(equals + 1));
    if (named == std::end(kLimits) || !seconds) return std::nullopt;
    limits.*(named->seconds) = *seconds;
  }
  return limits;
}

std::string to_string(const Limits& limits) {
  std::string text;
  for (const auto& named : kLimits)
    text += (text.empty() ? "" : ",") + std::string(named.name) + "=" +
            number_text(limits.*(named.seconds));
  return text;
}

}  // namespace tj::trainer
