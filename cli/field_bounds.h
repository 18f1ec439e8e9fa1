// What a whole number of a resource's may be, asked by the name of its field.
#pragma once
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "contract/launch_env.h"
#include "operator/api/policy_fields.h"

namespace tj {

/// What a whole number of that name may be.
template <typename Object>
field::Bounds bounds_of(std::string_view wanted) {
  field::Bounds found;
  Object object;
  field::visit_fields(object, [&](const char* name, const auto&, const auto&... limits) {
    if constexpr ((std::same_as<std::remove_cvref_t<decltype(limits)>, field::Bounds> && ...)) {
      if (name == wanted) ((found = limits), ...);
    }
  });
  return found;
}

/// Absent where the field of that name may not be it.
template <typename Object>
std::optional<int> whole_number(std::string_view name, const std::string& text) {
  const field::Bounds bounds = bounds_of<Object>(name);
  const auto number =
      parse_int(name, text, static_cast<int>(bounds.min), static_cast<int>(bounds.max));
  return number ? std::optional<int>(*number) : std::nullopt;
}

}  // namespace tj
