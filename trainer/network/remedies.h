// What to do where ranks do not meet, by the words in which the trainer tells that they did not.
// Pure.
#pragma once
#include <string>

namespace tj::trainer {

/// "... at a:29500: Connection refused" -> the same, "; " and what would be right; unchanged where
/// nobody knows.
std::string with_remedy(std::string cause);

struct CauseAndRemedy {
  std::string cause;
  std::string remedy;  // may be empty
  bool operator==(const CauseAndRemedy&) const = default;
};
/// Takes apart what with_remedy() has put together.
CauseAndRemedy split_remedy(const std::string& told);

}  // namespace tj::trainer
