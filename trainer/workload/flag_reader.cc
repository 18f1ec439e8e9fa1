#include "trainer/workload/flag_reader.h"

#include <charconv>
#include <sstream>

#include "contract/utf8.h"

namespace tj::trainer {
namespace {

/// A whole number above `most`, also one that no 64 bits hold.
bool is_above(const std::string& text, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return false;
  return failure == std::errc::result_out_of_range ? !text.starts_with('-') : value > most;
}

}  // namespace

std::string FlagReader::text(const std::string& name) {
  std::string value = is_given(name) ? given(name) : "";
  if (value.empty()) fail(name, value, "it must name a folder");
  std::string shown = value;
  std::ranges::replace(shown, '\n', ' ');
  note(name, shown, "flag");
  return value;
}

std::string FlagReader::folder_or_off(const std::string& name, const std::string& otherwise) {
  if (!is_given(name)) return otherwise;
  if (given(name).empty()) fail(name, "", "it must name a folder, or be off");
  return given(name) == "off" ? "" : given(name);
}

std::vector<std::string> FlagReader::names(const std::string& name) {
  std::vector<std::string> result;
  std::istringstream lines(text(name));
  for (std::string line; std::getline(lines, line);) result.push_back(line);
  return result;
}

bool FlagReader::is_set(const std::string& name) {
  note(name, is_given(name) ? "yes" : "no", is_given(name) ? "flag" : "default");
  return is_given(name);
}

std::int64_t FlagReader::whole(const std::string& name, const Otherwise& otherwise,
                               Range<std::int64_t> range) {
  std::string rule = "it must be a whole number from " + std::to_string(range.min);
  // A bound that nobody comes near is named to those alone who are beyond it.
  const std::string& text = is_given(name) ? given(name) : otherwise.value;
  if (range.max < kCountMax || is_above(text, range.max))
    rule += " to " + std::to_string(range.max);
  return number<std::int64_t>(name, otherwise, range, rule);
}

double FlagReader::real(const std::string& name, const Otherwise& otherwise, Range<double> range,
                        const std::string& rule) {
  return number<double>(name, otherwise, range, rule);
}

void FlagReader::note(const std::string& name, const std::string& value, std::string origin) {
  const std::string shown = name.starts_with("--") ? name.substr(2) : name;
  settings_.push_back(
      {.name = shown, .value = with_invalid_utf8_replaced(value), .origin = std::move(origin)});
}

void FlagReader::fail(const std::string& name, const std::string& value, const std::string& rule) {
  fail({.code = Code::invalid, .message = "is \"" + value + "\"; " + rule, .subject = name});
}

void FlagReader::fail(Error first) {
  if (!error_) error_ = std::move(first);
}

template <typename T>
T FlagReader::number(const std::string& name, const Otherwise& otherwise, Range<T> range,
                     const std::string& rule) {
  const std::string& text = is_given(name) ? given(name) : otherwise.value;
  T value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool parsed = failure == std::errc{} && end == text.data() + text.size();
  if (!parsed || !(value >= range.min && value <= range.max)) {
    fail(name, text, rule);
    // What follows from it is not used, but must not trap.
    value = range.min > T{} ? range.min : T{1};
  }
  note(name, text, is_given(name) ? "flag" : otherwise.origin);
  return value;
}

}  // namespace tj::trainer
