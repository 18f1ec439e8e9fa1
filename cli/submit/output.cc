#include "cli/submit/output.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/plain_text.h"
#include "cli/yaml_text.h"
#include "contract/names.h"
#include "operator/api/read.h"

namespace tj::submit {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMessageCharsMax = 16 * 1024;
constexpr std::string_view kFieldRoots[] = {"spec", "metadata", "data"};

std::string name_of(const Json& object) {
  std::string kind = read::string_at(object, "kind");
  std::ranges::transform(kind, kind.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string version = read::string_at(object, "apiVersion");
  const auto slash = version.find('/');
  if (slash != std::string::npos) kind += "." + version.substr(0, slash);
  return kind + "/" + read::string_at(read::object_at(object, "metadata"), "name");
}

constexpr std::string_view kSeparator = ", ";

/// "spec.masterPort: ..." begins with the path of a field.
bool begins_with_field(std::string_view text) {
  const std::string_view word = text.substr(0, text.find(' '));
  return word.ends_with(':') && std::ranges::any_of(kFieldRoots, [&](std::string_view root) {
           return word.starts_with(root) && word.size() > root.size() &&
                  (word[root.size()] == '.' || word[root.size()] == '[');
         });
}

/// Where what is said of the field that begins at `at` ends.
std::size_t next_field(std::string_view text, std::size_t at) {
  for (auto end = text.find(kSeparator, at); end != std::string_view::npos;
       end = text.find(kSeparator, end + 1)) {
    if (begins_with_field(text.substr(end + kSeparator.size()))) return end;
  }
  return text.size();
}

}  // namespace

Result<Format> parse_format(const std::string& text) {
  if (text == "yaml") return Format::yaml;
  if (text == "json") return Format::json;
  if (text == "name") return Format::name;
  return Error{
      Code::invalid, "is \"" + plain_line(text) + "\"; it must be yaml, json or name", "-o", {}};
}

std::string printed(const std::vector<Json>& objects, Format format) {
  std::string text;
  switch (format) {
    case Format::yaml:
      for (const Json& object : objects) text += (text.empty() ? "" : "---\n") + yaml_text(object);
      return text;
    case Format::name:
      for (const Json& object : objects) text += name_of(object) + "\n";
      return text;
    case Format::json: break;
  }
  if (objects.size() == 1) return objects.front().dump(4) + "\n";
  return Json({{"apiVersion", "v1"}, {"kind", "List"}, {"items", objects}}).dump(4) + "\n";
}

std::string by_field(const std::string& message) {
  if (message.size() > kMessageCharsMax)
    return plain_line(message.substr(0, kMessageCharsMax)) + "...";
  const auto begin = message.find(" is invalid: ");
  if (begin == std::string::npos) return plain_line(message);
  constexpr std::size_t kWordsChars = 13;
  std::string fields = message.substr(begin + kWordsChars);
  if (fields.starts_with('[') && fields.ends_with(']'))
    fields = fields.substr(1, fields.size() - 2);
  std::string text = plain_line(message.substr(0, begin)) + " is invalid:";
  for (std::size_t at = 0; at < fields.size();) {
    const std::size_t end = next_field(fields, at);
    text += "\n  " + plain_line(fields.substr(at, end - at));
    at = end + kSeparator.size();
  }
  return text;
}

}  // namespace tj::submit
