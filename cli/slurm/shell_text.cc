#include "cli/slurm/shell_text.h"

#include <algorithm>

namespace tj::slurm {
namespace {

bool is_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
}
bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// Means itself wherever it stands in a word. Not `~`, which is a home at its begin, nor `=`, which
/// makes an assignment of the first word.
bool is_plain(char letter) {
  return is_letter(letter) || is_digit(letter) ||
         std::string_view("_@%+:,./-").find(letter) != std::string_view::npos;
}

/// `=` is plain in all words but the first, and there it is quoted for nothing.
std::string quoted_part(std::string_view text) {
  const auto is_option_letter = [](char letter) { return is_plain(letter) || letter == '='; };
  const bool is_option = text.starts_with("--") && std::ranges::all_of(text, is_option_letter);
  if (!text.empty() && (is_option || std::ranges::all_of(text, is_plain))) return std::string(text);
  std::string word = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      word += "'\\''";
    } else {
      word += letter;
    }
  }
  return word + "'";
}

void add_text(ShellText& to, std::string_view text) {
  if (to.pieces.empty() || to.pieces.back().is_variable) to.pieces.push_back({});
  to.pieces.back().text += text;
}

}  // namespace

ShellText::ShellText(std::string_view text) {
  if (!text.empty()) pieces.push_back({.text = std::string(text), .is_variable = false});
}

ShellText ShellText::variable(std::string name) {
  ShellText text;
  text.pieces.push_back({.text = std::move(name), .is_variable = true});
  return text;
}

std::string shell_word(std::string_view text) { return quoted_part(text); }

std::string shell_word(const ShellText& text) {
  if (text.pieces.empty()) return "''";
  std::string word;
  for (const auto& piece : text.pieces) {
    if (piece.is_variable) {
      word.append("\"${").append(piece.text).append("}\"");
    } else {
      word += quoted_part(piece.text);
    }
  }
  return word;
}

std::string assignment(std::string_view name, const ShellText& value) {
  return std::string(name) + "=" + shell_word(value);
}

bool is_variable_name(std::string_view name) {
  const auto is_of_name = [](char letter) {
    return is_letter(letter) || is_digit(letter) || letter == '_';
  };
  return !name.empty() && !is_digit(name[0]) && std::ranges::all_of(name, is_of_name);
}

ShellText with_references(std::string_view text,
                          const std::function<bool(std::string_view)>& known) {
  ShellText result;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const auto end = rest.starts_with("$(") ? rest.find(')') : std::string_view::npos;
    if (rest.starts_with("$$")) {
      add_text(result, "$");
      at += 2;
    } else if (end != std::string_view::npos) {
      const std::string_view name = rest.substr(2, end - 2);
      if (known(name)) {
        result.pieces.push_back({.text = std::string(name), .is_variable = true});
      } else {
        add_text(result, rest.substr(0, end + 1));
      }
      at += end + 1;
    } else {
      const auto next = std::min(rest.find('$', 1), rest.size());
      add_text(result, rest.substr(0, next));
      at += next;
    }
  }
  return result;
}

}  // namespace tj::slurm
