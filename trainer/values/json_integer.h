// For readers that end with an exception at the first field that is wrong.
#pragma once
#include <string>

#include "contract/json_integer.h"

namespace tj::trainer {

/// Throws as nlohmann does for a wrong type (json::exception) unless `value` is a whole number that
/// Integer holds.
template <typename Integer = std::int64_t, typename Json>
Integer integer_of(const Json& value) {
  if (const auto number = json_integer<Integer>(value)) return *number;
  const std::string found = value.is_number() ? value.dump() : value.type_name();
  throw Json::type_error::create(302, "must be a whole number in its range, but is " + found,
                                 &value);
}

}  // namespace tj::trainer
