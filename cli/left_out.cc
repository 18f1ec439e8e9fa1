#include "cli/left_out.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tj {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kPathCharsMax = 120;

/// In a comment: printable, and in one line.
std::string told(const std::string& path) {
  const std::string quoted = Json(path).dump(-1, ' ', true, Json::error_handler_t::replace);
  const std::string text = quoted.substr(1, quoted.size() - 2);
  return text.size() > kPathCharsMax ? text.substr(0, kPathCharsMax) + "..." : text;
}

}  // namespace

void LeftOut::leave_out(const field::Field& field, const std::string& why) {
  const bool is_scalar = field.value != nullptr && !field.value->is_structured();
  notes_.push_back(told(field.path) + (is_scalar ? " (" + field::shown(*field.value) + ")" : "") +
                   " is left out: " + why);
}

void LeftOut::leave_out_rest(const field::Field& object, field::Names taken,
                             std::span<const LeftOutField> known) {
  std::size_t untold = 0, count = 0;
  for (const auto& [name, value] : object.value->items()) {
    const bool is_given = !value.is_null() && std::ranges::find(taken, name) == taken.end();
    if (!is_given) continue;
    const auto found = std::ranges::find(known, name, &LeftOutField::name);
    if (++count > fields_max_) {
      ++untold;
    } else {
      leave_out(field::child(object, name), found == known.end() ? nothing_like_it_ : found->why);
    }
  }
  if (untold > 0)
    notes_.push_back(std::to_string(untold) + " more fields of " + told(object.path) +
                     " are left out");
}

}  // namespace tj
