#include "cli/yaml_text.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "yaml/yaml_json.h"

namespace tj {
namespace {

using Json = nlohmann::json;

// In this order where they stand side by side, before all others.
constexpr std::string_view kFirstKeys[] = {
    "apiVersion",   "kind",           "metadata",        "name",
    "namespace",    "labels",         "annotations",     "spec",
    "runPolicy",    "masterPort",     "nprocPerNode",    "replicaSpecs",
    "replicas",     "template",       "image",           "command",
    "args",         "workingDir",     "value",           "mountPath",
    "env",          "envFrom",        "imagePullPolicy", "resources",
    "volumeMounts", "initContainers", "containers",      "volumes"};
constexpr std::size_t kLineCharsMax = 90;
constexpr std::string_view kLettersAndDigits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool is_one_of(char c, std::string_view chars) { return chars.find(c) != std::string_view::npos; }

std::vector<std::string> ordered_keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);  // by the alphabet
  std::ranges::stable_sort(keys, {}, [](const std::string& key) {
    return std::ranges::find(kFirstKeys, key) - std::begin(kFirstKeys);
  });
  return keys;
}

/// Needs no quotes, in brackets neither. YAML allows more than these.
bool is_plain(const std::string& text) {
  const auto after_dashes = text.find_first_not_of('-');
  if (after_dashes == std::string::npos) return false;
  const bool starts_well = is_one_of(text[after_dashes], kLettersAndDigits) ||
                           (after_dashes == 0 && is_one_of(text[0], "/._$"));
  const bool has_only_these = std::ranges::all_of(text, [](char c) {
    return is_one_of(c, kLettersAndDigits) || is_one_of(c, "/._$()-+=@%: ");
  });
  const bool has_colon = text.back() == ':' || text.find(": ") != std::string::npos;
  return starts_well && has_only_these && !has_colon && text.back() != ' ' && reads_as_text(text);
}

/// Several lines that a block gives back as they are.
bool is_script(const std::string& text) {
  constexpr std::string_view kOtherBreaks[] = {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9",
                                               "\xEF\xBB\xBF", " \n"};
  const auto end = text.find_last_not_of('\n');
  const bool ends_with_one_break = end != std::string::npos && end + 2 == text.size();
  const bool starts_with_its_text = !text.empty() && !is_one_of(text.front(), " \n");
  const bool is_printable = std::ranges::all_of(
      text, [](unsigned char c) { return (c >= ' ' && c != 0x7F) || c == '\n'; });
  const bool has_other_breaks = std::ranges::any_of(
      kOtherBreaks, [&](auto other) { return text.find(other) != std::string::npos; });
  return ends_with_one_break && starts_with_its_text && is_printable && !has_other_breaks;
}

/// About how many characters it takes in one line; more than there are where it needs several.
std::size_t line_chars(const Json& value) {
  constexpr std::size_t kSeparatorChars = 2;
  constexpr std::size_t kTooMany = kLineCharsMax + 1;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return text.find('\n') == std::string::npos ? text.size() + kSeparatorChars : kTooMany;
  }
  if (value.is_array()) return value.empty() ? kSeparatorChars : kTooMany;
  if (!value.is_object()) return value.dump().size() + kSeparatorChars;
  std::size_t chars = kSeparatorChars;
  for (const auto& [key, entry] : value.items()) {
    chars += key.size() + kSeparatorChars + line_chars(entry);
    if (chars > kLineCharsMax) return kTooMany;
  }
  return chars;
}

/// A list of words.
bool is_line_of_words(const Json& list) {
  std::size_t chars = 0;
  for (const Json& entry : list) {
    chars += line_chars(entry);
    if (entry.is_structured() || chars > kLineCharsMax) return false;
  }
  return true;
}

class Writer {
 public:
  std::string write(const Json& value) {
    put(value, /*in_list=*/false);
    return std::string(out_.c_str()) + "\n";
  }

 private:
  void put(const Json& value, bool in_list) {
    const bool is_short_entry = in_list && line_chars(value) <= kLineCharsMax;
    if (value.is_object()) return put_object(value, is_short_entry || value.empty());
    if (value.is_array()) return put_list(value);
    if (value.is_string()) return put_text(value.get_ref<const std::string&>());
    if (value.is_null()) {
      out_ << YAML::Null;
    } else {
      out_ << value.dump();
    }
  }

  void put_object(const Json& object, bool in_line) {
    if (in_line) out_ << YAML::Flow;
    out_ << YAML::BeginMap;
    for (const std::string& key : ordered_keys(object)) {
      out_ << YAML::Key;
      put_word(key);
      out_ << YAML::Value;
      put(object.at(key), /*in_list=*/false);
    }
    out_ << YAML::EndMap;
  }

  void put_list(const Json& list) {
    if (is_line_of_words(list)) out_ << YAML::Flow;
    out_ << YAML::BeginSeq;
    for (const Json& entry : list) put(entry, /*in_list=*/true);
    out_ << YAML::EndSeq;
  }

  void put_text(const std::string& text) {
    if (!is_script(text)) return put_word(text);
    out_ << YAML::Literal << text.substr(0, text.size() - 1);  // the emitter adds the last break
  }

  void put_word(const std::string& text) {
    if (!is_plain(text)) out_ << YAML::DoubleQuoted << YAML::EscapeNonAscii;
    out_ << text;
  }

  YAML::Emitter out_;
};

}  // namespace

std::string yaml_text(const Json& value) { return Writer().write(value); }

}  // namespace tj
