#include "trainer/predict/traffic.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "trainer/values/byte_size.h"
#include "trainer/values/flat_layout.h"

namespace tj::trainer {
namespace {

constexpr double kFloatBytes = 4, kHalfBytes = 2;
constexpr double kRateMax = 1e15;  // bytes per second

/// n and m of the matrix as which a tensor is factored.
struct Extents {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

Extents extents_of(const Gradient& gradient) {
  if (gradient.shape.size() < 2) return {};
  return {.rows = gradient.shape.front(),
          .columns = element_count(std::span(gradient.shape).subspan(1))};
}

double factor_elements(const Gradient& gradient, int rank) {
  const auto [rows, columns] = extents_of(gradient);
  return static_cast<double>(rank) * static_cast<double>(rows + columns);
}

std::string lower(std::string_view text) {
  std::string low(text);
  std::ranges::transform(low, low.begin(), [](unsigned char letter) {
    return static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + 'a' - 'A' : letter);
  });
  return low;
}

/// Bits in a second by the unit's name; 0: it is none.
double bits_of(const std::string& unit) {
  const std::string name = lower(unit);
  constexpr std::array kPrefixes{std::pair{'k', 1e3}, std::pair{'m', 1e6}, std::pair{'g', 1e9},
                                 std::pair{'t', 1e12}};
  for (const auto& [letter, bits] : kPrefixes) {
    for (const char* const rest : {"bps", "bit", "bit/s", "b/s"})
      if (name == letter + std::string(rest)) return bits;
  }
  return 0;
}

}  // namespace

bool is_factored(const Gradient& gradient, int rank) {
  const auto [rows, columns] = extents_of(gradient);
  return is_worth_factors(static_cast<std::size_t>(rows), static_cast<std::size_t>(columns),
                          static_cast<std::size_t>(rank));
}

double payload_bytes(const Gradient& gradient, Codec codec, int powersgd_rank) {
  const auto elements = element_count(gradient.shape);
  const auto count = static_cast<double>(elements);
  switch (codec) {
    case Codec::fp32: return kFloatBytes * count;
    case Codec::bf16:
    case Codec::fp16: return kHalfBytes * count;
    case Codec::int8: {
      const auto chunks = (elements + kReduceBlockElements - 1) / kReduceBlockElements;
      return count + kFloatBytes * static_cast<double>(chunks);
    }
    case Codec::powersgd:
      return kFloatBytes * (is_factored(gradient, powersgd_rank)
                                ? factor_elements(gradient, powersgd_rank)
                                : count);
  }
  return 0;
}

double payload_bytes(std::span<const Gradient> gradients, Codec codec, int powersgd_rank) {
  double bytes = 0;
  for (const auto& gradient : gradients) bytes += payload_bytes(gradient, codec, powersgd_rank);
  return bytes;
}

std::int64_t element_count(std::span<const Gradient> gradients) {
  std::int64_t elements = 0;
  for (const auto& gradient : gradients) elements += element_count(gradient.shape);
  return elements;
}

double ring_bytes(double bytes, int ranks) { return 2.0 * (ranks - 1) / ranks * bytes; }

double ring_seconds(double bytes, int ranks, const Link& link) {
  if (ranks == 1) return 0;
  return ring_bytes(bytes, ranks) / link.bytes_per_second + 2.0 * (ranks - 1) * link.latency_s;
}

std::optional<double> link_rate_from(std::string_view text) {
  double number = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (failure != std::errc{}) return std::nullopt;
  const std::string unit(rest, end);
  const auto is_rate = [](double rate) { return rate > 0 && rate <= kRateMax; };
  constexpr std::string_view kPerSecond = "/s";
  // "MB" are bytes and "Mb" are bits: only the latter is looked for whatever its letters' size.
  const bool is_bytes = unit.ends_with("B/s");
  if (!is_bytes) {
    const double rate = number * bits_of(unit) / 8 * kTcpGoodput;
    return is_rate(rate) ? std::optional(rate) : std::nullopt;
  }
  const auto bytes = byte_size_from(text.substr(0, text.size() - kPerSecond.size()));
  if (!bytes || !is_rate(static_cast<double>(*bytes))) return std::nullopt;
  return static_cast<double>(*bytes);
}

}  // namespace tj::trainer
