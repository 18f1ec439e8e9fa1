// One conversation as data sets of vision-language models write it (LLaVA's, ShareGPT's, OpenAI's
// messages): who says what, and which pictures and videos come where. Pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

inline constexpr std::string_view kImageMark = "<image>";
inline constexpr std::string_view kVideoMark = "<video>";
inline constexpr std::int64_t kConversationBytesMax = 64 << 20;

enum class Speaker { system, user, assistant };

struct SpokenTurn {
  Speaker speaker = Speaker::user;
  /// Of a user kImageMark and kVideoMark where pictures and videos come.
  std::string text;
  bool operator==(const SpokenTurn&) const = default;
};

struct ShownFile {
  std::string path;  // as it is written
  bool is_video = false;
  bool operator==(const ShownFile&) const = default;
};

struct Conversation {
  std::vector<SpokenTurn> turns;
  std::vector<ShownFile> shown;  // in the order of their marks
  bool operator==(const Conversation&) const = default;
};

/// Of one JSON object: "conversations" of {"from", "value"} or "messages" of {"role", "content"},
/// either key with either words; roles human, user, gpt, assistant, model, system; contents text,
/// or a list of {"type": "text", "text"}, {"type": "image", "image"} and {"type": "video",
/// "video"}. "image", "images", "video" and "videos": a path or a list of paths, for the marks in
/// their order; where no mark stands at all, all of them come before what the user says first.
/// Fails with Code::invalid, and the member, for anything else; the subject is empty.
Result<Conversation> conversation_from(std::string_view json);
/// The same of one that somebody asks to be gone on with: the user speaks last. Answers at its end
/// are left out: they are what is asked for.
Result<Conversation> open_conversation_from(std::string_view json);

/// Leaves out all pictures but the newest (last) and `history_max` before it, with their marks and
/// the line end behind each. Videos stay.
void keep_newest_pictures(Conversation& conversation, std::int64_t history_max);

/// Leaves out turns at the end, and what they show, until an answer is the last turn but for
/// `turns` of them or fewer. False: there is no answer in so many.
bool cut_behind_answer(Conversation& conversation, std::size_t turns);

}  // namespace tj::trainer
