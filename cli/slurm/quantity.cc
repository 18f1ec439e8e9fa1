#include "cli/slurm/quantity.h"

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace tj::slurm {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr double kUnitsMax = 1e9;
constexpr int kExponentMax = 30;

// apimachinery/pkg/api/resource: decimal and binary suffixes.
constexpr std::pair<std::string_view, double> kSuffixes[] = {
    {"", 1.0},      {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},
    {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
    {"P", 1e15},    {"E", 1e18},    {"Ki", 1024.0}, {"Mi", kMebibyte},
    {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60},
};

std::optional<double> factor_of(std::string_view suffix) {
  for (const auto& [name, factor] : kSuffixes)
    if (suffix == name) return factor;
  const bool is_exponent = suffix.size() > 1 && (suffix[0] == 'e' || suffix[0] == 'E');
  if (!is_exponent) return std::nullopt;
  int exponent = 0;
  const std::string_view digits = suffix.substr(suffix[1] == '+' ? 2 : 1);
  const auto [end, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  const bool is_whole = failure == std::errc{} && end == digits.data() + digits.size();
  if (!is_whole || std::abs(exponent) > kExponentMax) return std::nullopt;
  return std::pow(10.0, exponent);
}

std::optional<double> value_of(std::string_view quantity) {
  const auto digits = std::min(quantity.find_first_not_of("0123456789."), quantity.size());
  const std::string_view number = quantity.substr(0, digits);
  double value = 0;
  const auto [end, failure] = std::from_chars(number.data(), number.data() + number.size(), value,
                                              std::chars_format::fixed);
  const bool is_number = failure == std::errc{} && end == number.data() + number.size();
  const auto factor = factor_of(quantity.substr(digits));
  if (number.empty() || !is_number || !factor) return std::nullopt;
  return value * *factor;
}

std::optional<long long> whole(std::optional<double> count) {
  if (!count || !std::isfinite(*count) || *count > kUnitsMax) return std::nullopt;
  // What is not a whole binary number, such as 0.1 x 10, is not one more because of that.
  return std::max(1LL, static_cast<long long>(std::ceil(*count - 1e-6)));
}

}  // namespace

std::optional<long long> whole_units(std::string_view quantity) {
  return whole(value_of(quantity));
}

std::optional<long long> whole_mebibytes(std::string_view quantity) {
  const auto bytes = value_of(quantity);
  return bytes ? whole(*bytes / kMebibyte) : std::nullopt;
}

}  // namespace tj::slurm
