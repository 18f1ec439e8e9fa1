// A conversation as Qwen2.5-VL's tokens and labels: its chat template, with pictures in their
// places, and which tokens are learned. Pure: the tokenizer comes as a function.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"
#include "trainer/workloads/qwen_vggt/mrope.h"

namespace tj::trainer {

enum class ChatRole { system, user, assistant };
const char* to_string(ChatRole role);

struct ChatTurn {
  ChatRole role = ChatRole::user;
  /// Of a user "<image>" and "<video>" mark where pictures and videos come.
  std::string text;
  bool operator==(const ChatTurn&) const = default;
};

/// Ids of the tokens that no text makes.
struct ChatIds {
  std::int32_t turn_begin = 151644;  // <|im_start|>
  std::int32_t turn_end = 151645;    // <|im_end|>
  VisionIds vision;
  bool operator==(const ChatIds&) const = default;
};

/// What a mark becomes.
struct ChatVision {
  bool is_video = false;
  std::int64_t tokens = 0;
};

/// Ids of a text, which holds none of the special tokens.
using TextEncoder = std::function<std::vector<std::int32_t>(std::string_view)>;

inline constexpr std::int32_t kNoLabel = -100;  // as PyTorch's cross entropy leaves out
inline constexpr std::string_view kDefaultSystem = "You are a helpful assistant.";

struct ChatTokens {
  std::vector<std::int32_t> ids;
  /// Of each token itself (it is learned at the place before it): its id, or kNoLabel in turns of
  /// system and user, and in the three tokens that open a turn of the assistant.
  std::vector<std::int32_t> labels;

  std::int64_t learned() const;
};

enum class ChatEnd {
  complete,  // for training
  open,      // an assistant's turn is begun, for it to be gone on with
};

/// `turns` in their order; where no system speaks first, kDefaultSystem does. `vision` in the order
/// of the marks. Fails with Code::invalid where there are no turns, marks and pictures differ in
/// number or kind, or the conversation is to be complete and no assistant speaks.
Result<ChatTokens> chat_tokens(std::span<const ChatTurn> turns, std::span<const ChatVision> vision,
                               const ChatIds& ids, const TextEncoder& encode,
                               ChatEnd end = ChatEnd::complete);

/// Where in a row of a batch a token is learned, and which.
struct ChatTarget {
  std::int64_t place = 0;  // of the token before it, whose logits it is judged by
  std::int32_t id = 0;
  bool operator==(const ChatTarget&) const = default;
};
/// The first token of a row is judged by nothing.
std::vector<ChatTarget> chat_targets(std::span<const std::int32_t> labels);

}  // namespace tj::trainer
