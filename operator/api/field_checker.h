// The checks that a field of a manifest can fail, each with its message: what stands there, and
// what would be right. They say what the API server refuses by a schema; which field needs which
// check stands in validate.cc and validate_policy.cc.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "operator/api/field.h"
#include "operator/api/validate.h"

namespace tj::field {

/// A person's slip of the finger is refused; the operator ignores what a newer version may have.
enum class UnknownFields { refused, ignored };

/// Both ends included.
struct Bounds {
  long long min = 0;
  long long max = 0;
};

/// Collects what is wrong, in the order of the manifest. A field without a value passes, but for
/// the checks that require one.
class FieldChecker {
 public:
  explicit FieldChecker(UnknownFields unknown_fields) : unknown_fields_(unknown_fields) {}
  std::vector<FieldError> take() { return std::move(errors_); }

  void add(const Field& field, std::string message);

  /// True if there is an object with these fields to look at; `meaning` says what it stands for.
  bool require_object(const Field& field, const std::string& meaning);
  bool check_object(const Field& field, const std::string& meaning);
  void check_known_fields(const Field& object, Names known);
  /// True if there is a list whose entries are worth a look; `meaning` names them in the plural.
  bool check_list(const Field& field, Bounds sizes, const std::string& meaning);

  /// The number, if it is there and within its bounds.
  std::optional<long long> check_whole_number(const Field& field, Bounds bounds);
  void check_boolean(const Field& field);
  void check_text(const Field& field, Bounds char_counts);
  void require_choice(const Field& field, Names choices);
  void check_choice(const Field& field, Names choices);

 private:
  UnknownFields unknown_fields_;
  std::vector<FieldError> errors_;
};

}  // namespace tj::field
