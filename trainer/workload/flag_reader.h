// Reads flags one by one, writes the start-up table as it goes, and keeps the first error. Pure.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/values/settings.h"
#include "trainer/workload/flag.h"

namespace tj::trainer {

/// The largest number of things (steps, samples, elements) that any flag may say.
inline constexpr std::int64_t kCountMax = 1'000'000'000'000;

/// Of a number in [0, 1).
inline constexpr const char* kShareRule = "it must be a number from 0 to less than 1";

template <typename T>
struct Range {
  T min;
  T max;
};

/// The value of a flag that is not given, and where it comes from.
struct Otherwise {
  std::string value;
  std::string origin = "default";
};

class FlagReader {
 public:
  explicit FlagReader(const Flags& flags) : flags_(flags) {}

  bool is_given(const std::string& name) const { return flags_.contains(name); }
  /// Needs is_given().
  const std::string& given(const std::string& name) const { return flags_.find(name)->second; }

  /// A name of a folder or file; missing or empty is an error.
  std::string text(const std::string& name);
  /// "off" is empty. Not in the table: who opens the folder says what became of it.
  std::string folder_or_off(const std::string& name, const std::string& otherwise);
  std::vector<std::string> names(const std::string& name);
  bool is_set(const std::string& name);
  std::int64_t whole(const std::string& name, const Otherwise& otherwise,
                     Range<std::int64_t> range);
  /// `rule`: what would be right, as "it must be ...".
  double real(const std::string& name, const Otherwise& otherwise, Range<double> range,
              const std::string& rule);
  /// One of the names that `parse` knows; `rule` lists them.
  template <typename Parse>
  auto choice(const std::string& name, const std::string& otherwise, const std::string& rule,
              Parse parse) {
    const bool has_value = is_given(name);
    const std::string value = has_value ? given(name) : otherwise;
    const auto parsed = parse(value);
    if (!parsed) fail(name, value, "it must be " + rule);
    note(name, value, has_value ? "flag" : "default");
    return parsed.value_or(*parse(otherwise));
  }

  /// A row of the table.
  void note(const std::string& name, const std::string& value, std::string origin);
  /// `rule`: what would be right. Only the first failure is kept.
  void fail(const std::string& name, const std::string& value, const std::string& rule);
  void fail(Error first);

  const std::optional<Error>& error() const { return error_; }
  std::vector<Setting> take_settings() { return std::move(settings_); }

 private:
  template <typename T>
  T number(const std::string& name, const Otherwise& otherwise, Range<T> range,
           const std::string& rule);

  const Flags& flags_;
  std::vector<Setting> settings_;
  std::optional<Error> error_;
};

}  // namespace tj::trainer
