// A value in a manifest together with the path that a person would look for: what messages about it
// are made of.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace tj::field {

using Names = std::span<const std::string_view>;

/// `value` is null where there is none; it points into the manifest, which must live longer.
struct Field {
  const nlohmann::json* value = nullptr;
  std::string path;
};

/// The entry `name` of an object; without a value if there is no such entry, or no object. A null
/// is none, as on the API server, which drops it.
Field child(const Field& parent, const std::string& name);

/// The entry of a list; `list` must be one and have it.
Field item(const Field& list, std::size_t index);

/// The value as a message shows it: JSON, shortened; "an object" and "a list" for those.
std::string shown(const nlohmann::json& value);

/// What to say of a field that is not among `known`: the closest of them, or all.
std::string unknown_message(const std::string& name, Names known);

}  // namespace tj::field
