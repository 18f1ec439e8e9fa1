#include "operator/api/field_checker.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "contract/utf8.h"
#include "operator/api/read.h"

namespace tj::field {
namespace {

using nlohmann::json;

/// "is missing" or "is 7".
std::string seen(const Field& field) {
  return field.value == nullptr ? "is missing" : "is " + shown(*field.value);
}

/// `"A", "B" or "C"`
std::string alternatives(Names choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += '"' + std::string(choices[i]) + '"';
  }
  return text;
}

std::string range(Bounds bounds) {
  return std::to_string(bounds.min) + " to " + std::to_string(bounds.max);
}

bool is_within(long long number, Bounds bounds) {
  return number >= bounds.min && number <= bounds.max;
}

/// The API server counts characters, not bytes: all but the second and later bytes of each.
long long char_count(const std::string& text) {
  return std::count_if(text.begin(), text.end(), std::not_fn(is_utf8_continuation));
}

}  // namespace

void FieldChecker::add(const Field& field, std::string message) {
  errors_.push_back({.field = field.path, .message = std::move(message)});
}

bool FieldChecker::require_object(const Field& field, const std::string& meaning) {
  if (field.value != nullptr) return check_object(field, meaning);
  add(field, "is missing; it must be " + meaning);
  return false;
}

bool FieldChecker::check_object(const Field& field, const std::string& meaning) {
  if (field.value == nullptr) return false;
  if (field.value->is_object()) return true;
  add(field, seen(field) + "; it must be an object: " + meaning);
  return false;
}

void FieldChecker::check_known_fields(const Field& object, Names known) {
  if (unknown_fields_ == UnknownFields::ignored) return;
  for (const auto& [name, value] : object.value->items()) {
    const bool is_known = std::find(known.begin(), known.end(), name) != known.end();
    if (!is_known) add(child(object, name), unknown_message(name, known));
  }
}

bool FieldChecker::check_list(const Field& field, Bounds sizes, const std::string& meaning) {
  if (field.value == nullptr) return false;
  if (!field.value->is_array()) {
    add(field, seen(field) + "; it must be a list of " + meaning);
    return false;
  }
  const auto size = static_cast<long long>(field.value->size());
  if (is_within(size, sizes)) return true;
  add(field, size == 0 ? "is an empty list; it must have " + range(sizes) + " " + meaning
                       : "has " + std::to_string(size) + " entries; it must have at most " +
                             std::to_string(sizes.max));
  return false;
}

std::optional<long long> FieldChecker::check_whole_number(const Field& field, Bounds bounds) {
  if (field.value == nullptr) return std::nullopt;
  const auto number = json_integer<long long>(*field.value);
  if (number && is_within(*number, bounds)) return number;
  add(field, seen(field) + "; it must be a whole number from " + range(bounds));
  return std::nullopt;
}

void FieldChecker::check_boolean(const Field& field) {
  if (field.value == nullptr || field.value->is_boolean()) return;
  add(field, seen(field) + "; it must be true or false");
}

void FieldChecker::check_text(const Field& field, Bounds char_counts) {
  if (field.value == nullptr) return;
  const bool fits = field.value->is_string() &&
                    is_within(char_count(field.value->get_ref<const std::string&>()), char_counts);
  if (!fits)
    add(field, seen(field) + "; it must be a text of " + range(char_counts) + " characters");
}

void FieldChecker::require_choice(const Field& field, Names choices) {
  const bool is_one = field.value != nullptr && field.value->is_string() &&
                      std::find(choices.begin(), choices.end(),
                                field.value->get_ref<const std::string&>()) != choices.end();
  if (!is_one) add(field, seen(field) + "; it must be " + alternatives(choices));
}

void FieldChecker::check_choice(const Field& field, Names choices) {
  if (field.value != nullptr) require_choice(field, choices);
}

}  // namespace tj::field
