// Whole numbers of JSON that others wrote. nlohmann casts whatever number stands there: 1e300 is
// then undefined behaviour, and one too large becomes another number.
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

namespace tj {

/// Absent unless `value` is a whole number that Integer holds.
template <std::integral Integer, typename Json>
std::optional<Integer> json_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<std::uint64_t>();
    if (std::in_range<Integer>(number)) return static_cast<Integer>(number);
  } else if (value.is_number_integer()) {
    const auto number = value.template get<std::int64_t>();
    if (std::in_range<Integer>(number)) return static_cast<Integer>(number);
  }
  return std::nullopt;
}

}  // namespace tj
