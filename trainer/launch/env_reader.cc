#include "trainer/launch/env_reader.h"

#include <utility>

namespace tj::trainer {

Error invalid(std::string_view subject, std::string message) {
  return Error{.code = Code::invalid,
               .message = std::move(message),
               .subject = std::string(subject),
               .retry_after = {}};
}

Fact<std::string> EnvReader::text(std::string_view name, std::string_view what) {
  const auto value = lookup_(name);
  if (!value) refuse(name, "is not set; it must be " + std::string(what));
  if (value && value->empty()) refuse(name, "is empty; it must be " + std::string(what));
  return {value.value_or(""), std::string(name)};
}

Fact<std::string> EnvReader::text_or(std::string_view name, std::string_view what,
                                     Fact<std::string> otherwise) {
  return has(name) ? text(name, what) : std::move(otherwise);
}

Fact<int> EnvReader::integer(const IntVar& var) {
  Fact<int> fact{var.min, std::string(var.name)};
  const auto digits = text(var.name, var.what);
  if (error_) return fact;
  const auto number = parse_int(var.name, digits.value, var.min, var.max);
  if (number) {
    fact.value = *number;
  } else {
    refuse(number.error());
  }
  return fact;
}

Fact<int> EnvReader::integer_or(const IntVar& var, Fact<int> otherwise) {
  return has(var.name) ? integer(var) : std::move(otherwise);
}

std::optional<Fact<int>> EnvReader::nproc(std::string_view name) {
  const auto value = lookup_(name);
  if (!value || *value == "auto" || *value == "gpu") return std::nullopt;
  const auto count = parse_int(name, *value, 1, INT_MAX);
  if (count) return Fact<int>{*count, std::string(name)};
  refuse(name, "is \"" + *value + "\"; it must be \"auto\" or a number of processes from 1");
  return std::nullopt;
}

void EnvReader::require_below(const Fact<int>& index, Bound bound) {
  if (index.value < bound.value) return;
  refuse(index.origin, "is " + std::to_string(index.value) + " with " + std::string(bound.name) +
                           " " + std::to_string(bound.value) + "; it must be from 0 to " +
                           std::to_string(bound.value - 1));
}

void EnvReader::require_same(std::string_view name, const Fact<int>& other) {
  const auto value = lookup_(name);
  if (!value || *value == std::to_string(other.value)) return;
  refuse(name, "is \"" + *value + "\" with " + other.origin + " " + std::to_string(other.value) +
                   "; both say the same thing and must be equal");
}

void EnvReader::require_same(std::string_view name, const Fact<std::string>& other) {
  const auto value = lookup_(name);
  if (!value || *value == other.value) return;
  refuse(name, "is \"" + *value + "\" with " + other.origin + " \"" + other.value +
                   "\"; both say the same thing and must be equal");
}

}  // namespace tj::trainer
