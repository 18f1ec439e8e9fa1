#include "cli/submit/script.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "contract/utf8.h"

namespace tj::submit {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeyCharsMax = 253;  // of an entry of a ConfigMap
constexpr std::pair<std::string_view, const char*> kInterpreters[] = {
    {".sh", "bash"}, {".bash", "bash"}, {".py", "python3"}};
constexpr std::string_view kSpaces = " \t";

Error wrong(std::string message) {
  return Error{Code::invalid, std::move(message), "--script", {}};
}

bool is_key_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

/// What a ConfigMap takes for a name ([-._a-zA-Z0-9]+, not beginning with two dots).
std::string key_of(const fs::path& path) {
  std::string key = path.filename().string();
  for (char& c : key) {
    if (!is_key_char(c)) c = '_';
  }
  const bool fits =
      !key.empty() && key.size() <= kKeyCharsMax && key != "." && !key.starts_with("..");
  return fits ? key : "script";
}

Result<std::string> read_bounded(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return wrong("\"" + path + "\" is a folder; it must be a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return wrong("\"" + path + "\" cannot be read: " + std::strerror(errno) +
                 "; it must be a file of this machine (what lies in the image or in a mount is "
                 "run by -- bash " +
                 path + ")");
  }
  std::string text(kScriptBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() <= kScriptBytesMax) return text;
  return wrong("\"" + path + "\" has more than " + std::to_string(kScriptBytesMax) +
               " bytes (1 MiB), the most that a ConfigMap holds; put it into the image or a volume "
               "and run it by -- bash PATH");
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

}  // namespace

Result<Script> read_script(const std::string& path) {
  auto text = read_bounded(path);
  if (!text) return text.error();
  if (text->empty()) return wrong("\"" + path + "\" is empty; it must be a script");
  if (text->find('\0') != std::string::npos)
    return wrong("\"" + path +
                 "\" is a binary file; it must be a script (a program belongs into "
                 "the image)");
  if (const auto valid = valid_utf8_bytes(*text); valid != text->size()) {
    return wrong("\"" + path + "\" is not UTF-8 at byte " + std::to_string(valid) +
                 "; save it as UTF-8");
  }
  return Script{.file_name = key_of(path), .text = *std::move(text)};
}

Result<std::vector<std::string>> interpreter_of(const Script& script) {
  const std::string_view line = std::string_view(script.text).substr(0, script.text.find('\n'));
  if (line.ends_with('\r')) {
    return wrong("\"" + script.file_name +
                 "\" has lines that end in CR LF, which shells do not "
                 "take; save it with LF alone (dos2unix " +
                 script.file_name + ")");
  }
  if (line.starts_with("#!")) {
    const std::string_view words = trimmed(line.substr(2));
    const auto end = std::min(words.find_first_of(kSpaces), words.size());
    const std::string_view argument = trimmed(words.substr(end));
    if (words.empty() || words.front() != '/') {
      return wrong("\"" + script.file_name + "\" begins with \"#!" + std::string(words) +
                   "\"; the interpreter must be a path, as in #!/bin/bash");
    }
    std::vector<std::string> command{std::string(words.substr(0, end))};
    if (!argument.empty()) command.emplace_back(argument);
    return command;
  }
  for (const auto& [suffix, program] : kInterpreters) {
    if (script.file_name.ends_with(suffix)) return std::vector<std::string>{program};
  }
  return wrong("\"" + script.file_name +
               "\" does not say what runs it; it must begin with a line "
               "such as #!/bin/bash, or its name end in .sh, .bash or .py");
}

}  // namespace tj::submit
