#include "trainer/values/byte_size.h"

#include <array>
#include <charconv>

namespace tj::trainer {
namespace {

struct ByteUnit {
  std::string_view name;
  double bytes;
};
constexpr double kKi = 1024;
constexpr std::array<ByteUnit, 14> kUnits{{{"", 1},
                                           {"B", 1},
                                           {"kB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"KiB", kKi},
                                           {"MiB", kKi* kKi},
                                           {"GiB", kKi* kKi* kKi},
                                           {"TiB", kKi* kKi* kKi* kKi},
                                           {"Ki", kKi},
                                           {"Mi", kKi* kKi},
                                           {"Gi", kKi* kKi* kKi},
                                           {"Ti", kKi* kKi* kKi* kKi}}};
constexpr double kBytesMax = 1e18;

}  // namespace

std::optional<std::int64_t> byte_size_from(std::string_view text) {
  double number = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (failure != std::errc{}) return std::nullopt;
  const std::string_view name(rest, static_cast<std::size_t>(end - rest));
  for (const auto& unit : kUnits) {
    const double bytes = number * unit.bytes;
    if (unit.name == name && bytes >= 0 && bytes <= kBytesMax)
      return static_cast<std::int64_t>(bytes);
  }
  return std::nullopt;
}

}  // namespace tj::trainer
