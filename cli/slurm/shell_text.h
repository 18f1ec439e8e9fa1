// Texts that anybody may have written, as words of a shell that mean nothing but themselves; and
// texts of a manifest, whose `$(NAME)` is filled in where the word is used. Pure.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tj::slurm {

/// A word of a shell, made of texts and variables.
struct ShellText {
  struct Piece {
    std::string text;  // or the name of a variable, which must be one that a shell takes
    bool is_variable = false;
    bool operator==(const Piece&) const = default;
  };
  std::vector<Piece> pieces;

  ShellText() = default;
  explicit ShellText(std::string_view text);
  static ShellText variable(std::string name);
  bool operator==(const ShellText&) const = default;
};

/// One word; without quotes where it needs none. `text` has no byte 0, which no word can have.
std::string shell_word(std::string_view text);
std::string shell_word(const ShellText& text);

/// `NAME=` in front of a word, and nothing between.
std::string assignment(std::string_view name, const ShellText& value);

/// What a shell takes as the name of a variable. Kubernetes takes others, too.
bool is_variable_name(std::string_view name);

/// A manifest's text: `$(NAME)` is the variable where it is `known`, and else itself; `$$` is `$`.
/// After k8s.io/kubernetes/third_party/forked/golang/expansion/expand.go.
ShellText with_references(std::string_view text,
                          const std::function<bool(std::string_view)>& known);

}  // namespace tj::slurm
