// Fields of a JSON document that somebody else wrote: whoever reads one ends at the first that is
// wrong, with its place in the document, what stands there and what should.
#pragma once
#include <cctype>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "contract/json_integer.h"
#include "contract/result.h"

namespace tj::trainer {

/// A value and where it stands. All that read it throw std::runtime_error.
class JsonPlace {
 public:
  using Json = nlohmann::json;
  JsonPlace(const Json& value, std::string name) : value_(&value), name_(std::move(name)) {}

  const Json& value() const { return *value_; }
  const std::string& name() const { return name_; }

  bool has(const std::string& member) const {
    return value_->is_object() && value_->contains(member) && !value_->at(member).is_null();
  }
  JsonPlace at(const std::string& member) const {
    if (!value_->is_object()) throw wrong("must be an object");
    if (!value_->contains(member)) throw std::runtime_error(shown(below(member)) + " is missing");
    return {value_->at(member), below(member)};
  }
  std::string text() const {
    if (!value_->is_string()) throw wrong("must be text");
    return value_->get<std::string>();
  }
  std::int64_t integer(std::int64_t least, std::int64_t most) const {
    const auto number = json_integer<std::int64_t>(*value_);
    if (!number || *number < least || *number > most)
      throw wrong("must be a whole number from " + std::to_string(least) + " to " +
                  std::to_string(most));
    return *number;
  }
  double number() const {
    if (!value_->is_number()) throw wrong("must be a number");
    return value_->get<double>();
  }
  /// Every element of an array; calls `take` with its place.
  template <typename Take>
  void each(const Take& take) const {
    if (!value_->is_array()) throw wrong("must be an array");
    for (std::size_t i = 0; i < value_->size(); ++i)
      take(JsonPlace((*value_)[i], name_ + "[" + std::to_string(i) + "]"));
  }
  std::runtime_error wrong(const std::string& should) const {
    return std::runtime_error((name_.empty() ? "" : shown(name_) + " ") + should + ", and is " +
                              (value_->is_structured() ? value_->type_name() : shown(words())));
  }

 private:
  std::string below(const std::string& member) const {
    return name_.empty() ? member : name_ + "." + member;
  }
  std::string words() const { return value_->dump(-1, ' ', true, Json::error_handler_t::replace); }
  /// For a line on a terminal: the words are the file's.
  static std::string shown(std::string text) {
    constexpr std::size_t kShownMax = 120;
    for (char& letter : text)
      if (std::iscntrl(static_cast<unsigned char>(letter)) != 0) letter = '?';
    return text.size() > kShownMax ? text.substr(0, kShownMax) + "..." : text;
  }
  const Json* value_;
  std::string name_;
};

}  // namespace tj::trainer
