#include "cli/completion/scripts.h"

namespace tj {
namespace {

// COMP_WORDBREAKS has = and :, at which bash cuts words; what it has cut off before the word is cut
// off the candidates as well.
constexpr const char* kBash = R"(# bash completion of tj; in ~/.bashrc: source <(tj completion bash)
_tj_complete() {
  local kind word line cur="${COMP_WORDS[COMP_CWORD]}" before=""
  local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  local i joined=()
  for ((i = 0; i < ${#words[@]}; ++i)); do
    if [[ ${words[i]} == = && ${#joined[@]} -gt 0 ]]; then
      joined[-1]+="="
      if ((i + 1 < ${#words[@]})); then joined[-1]+="${words[++i]}"; fi
    else
      joined+=("${words[i]}")
    fi
  done
  if [[ ${joined[-1]} == *=* && ${joined[-1]} == --* ]]; then before="${joined[-1]%%=*}="; fi
  if [[ $cur == = ]]; then cur=""; fi
  COMPREPLY=()
  {
    read -r kind
    while IFS= read -r line; do
      word="${line%%$'\t'*}"
      COMPREPLY+=("${word#"$before"}")
    done
  } < <("${COMP_WORDS[0]}" __complete -- "${joined[@]}" 2>/dev/null)
  if [[ $kind == files ]]; then
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
  fi
}
complete -F _tj_complete tj kubectl-tj
)";

constexpr const char* kZsh = R"(#compdef tj kubectl-tj
# zsh completion of tj; as _tj in a folder of fpath, or: source <(tj completion zsh)
_tj() {
  local kind line word
  local -a answer described
  answer=("${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  kind="${answer[1]}"
  for line in "${(@)answer[2,-1]}"; do
    [[ -n $line ]] || continue
    word="${line%%$'\t'*}"
    if [[ $line == *$'\t'* ]]; then
      described+=("${word//:/\\:}:${line#*$'\t'}")
    else
      described+=("${word//:/\\:}")
    fi
  done
  (( ${#described} )) && _describe -V 'tj' described
  [[ $kind == files ]] && _files
}
if [[ ${funcstack[1]} == _tj ]]; then _tj "$@"; else compdef _tj tj kubectl-tj; fi
)";

constexpr const char* kFish =
    R"(# fish completion of tj; tj completion fish > ~/.config/fish/completions/tj.fish
function __tj_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l answer ($words[1] __complete -- $words[2..-1] 2>/dev/null)
  if test "$answer[1]" = files
    __fish_complete_path (commandline -ct)
  end
  printf '%s\n' $answer[2..-1]
end
complete -c tj -f -a '(__tj_complete)'
complete -c kubectl-tj -f -a '(__tj_complete)'
)";

}  // namespace

std::string completion_script(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  return "";
}

}  // namespace tj
