// What is said of the fields of a manifest that has no place in what is made of it: each by its
// path, with its value where that is short, and with what there is in its place. Pure.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/field.h"

namespace tj {

/// A field without a counterpart, and what there is in place of it.
struct LeftOutField {
  std::string_view name;
  const char* why;
};

class LeftOut {
 public:
  /// `nothing_like_it` is said of fields that nobody knows; of more than `fields_max` of one object
  /// only the number is.
  LeftOut(const char* nothing_like_it, std::size_t fields_max)
      : nothing_like_it_(nothing_like_it), fields_max_(fields_max) {}

  void note(std::string text) { notes_.push_back(std::move(text)); }
  void leave_out(const field::Field& field, const std::string& why);
  /// All fields of an object but those that were `taken`.
  void leave_out_rest(const field::Field& object, field::Names taken,
                      std::span<const LeftOutField> known);
  std::vector<std::string> take() { return std::move(notes_); }

 private:
  const char* nothing_like_it_;
  std::size_t fields_max_;
  std::vector<std::string> notes_;
};

}  // namespace tj
