// What NCCL says when it fails, in one line with its cause, and what would be right. It has few
// error codes, and "unhandled system error" is most of them: the cause is in its last warning.
// Pure, and known to the plug-in, too.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

namespace tj::trainer {

struct NcclWords {
  std::string cause;   // "unhandled system error, NCCL version 2.28.9: Call to ... failed"
  std::string remedy;  // empty where nobody knows
  /// This node can't do it: no other rank is to blame, and a retry gives the same answer.
  bool is_of_this_node = false;
};

/// A text of c10d's, with stack or without, or of CUDA's: `cause` is its first line, and NCCL's
/// last warning where it has one.
NcclWords nccl_words(std::string_view thrown);

/// Did NCCL fail? By the first line of what c10d throws.
bool is_of_nccl(std::string_view thrown);

/// "cause; remedy"
std::string describe(const NcclWords& words);

/// NCCL has not started on this rank.
struct NcclStartError : std::runtime_error {
  explicit NcclStartError(const NcclWords& words)
      : std::runtime_error(describe(words)), is_of_this_node(words.is_of_this_node) {}
  bool is_of_this_node;
};

}  // namespace tj::trainer
