// Reads launch variables as facts and keeps the first thing that is wrong with them. Pure.
#pragma once
#include <climits>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/launch/identity.h"

namespace tj::trainer {

/// An integer variable; `what` says in words what its value must be.
struct IntVar {
  std::string_view name;
  std::string_view what;
  int min = 0;
  int max = INT_MAX;
};

/// Two numbers that bound each other, for the message: "RANK: is 2 with WORLD_SIZE 2; ...".
struct Bound {
  std::string_view name;
  int value = 0;
};

Error invalid(std::string_view subject, std::string message);

/// After the first error every read still returns a value within its bounds, and error() says that
/// none of them counts.
class EnvReader {
 public:
  explicit EnvReader(const EnvLookup& lookup) : lookup_(lookup) {}

  bool has(std::string_view name) const { return lookup_(name).has_value(); }
  Fact<int> integer(const IntVar& var);
  Fact<int> integer_or(const IntVar& var, Fact<int> otherwise);
  Fact<std::string> text(std::string_view name, std::string_view what);
  Fact<std::string> text_or(std::string_view name, std::string_view what,
                            Fact<std::string> otherwise);
  /// A number of processes; absent when the variable is unset, "auto" or "gpu".
  std::optional<Fact<int>> nproc(std::string_view name);
  /// Refuses an index that is not below its bound.
  void require_below(const Fact<int>& index, Bound bound);
  /// Refuses the variable, if it is set, unless it says the same as `other`.
  void require_same(std::string_view name, const Fact<int>& other);
  void require_same(std::string_view name, const Fact<std::string>& other);
  void refuse(std::string_view name, std::string message) { refuse(invalid(name, message)); }
  void refuse(const Error& error) {
    if (!error_) error_ = error;
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  const EnvLookup& lookup_;
  std::optional<Error> error_;
};

}  // namespace tj::trainer
