// Whole numbers of JSON that others wrote. nlohmann casts whatever number stands there: 1e300 is
// then undefined behaviour, and one too large becomes another number.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace tj::trainer {

/// Throws as nlohmann does for a wrong type (json::exception) unless `value` is a whole number that
/// Integer holds.
template <typename Integer = std::int64_t, typename Json>
Integer integer_of(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.template get<std::uint64_t>();
    if (std::in_range<Integer>(number)) return static_cast<Integer>(number);
  } else if (value.is_number_integer()) {
    const auto number = value.template get<std::int64_t>();
    if (std::in_range<Integer>(number)) return static_cast<Integer>(number);
  }
  const std::string found = value.is_number() ? value.dump() : value.type_name();
  throw Json::type_error::create(302, "must be a whole number in its range, but is " + found,
                                 &value);
}

}  // namespace tj::trainer
