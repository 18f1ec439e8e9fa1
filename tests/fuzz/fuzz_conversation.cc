// Conversations as anybody may write them: one, a file of them, and an index of such a file.
#include "tests/fuzz/fuzzed.h"
#include "trainer/data/conversation/conversation.h"
#include "trainer/data/conversation/conversation_file.h"
#include "trainer/data/conversation/conversation_index.h"

namespace {
using namespace tj::trainer;

std::size_t marks_in(const Conversation& conversation) {
  std::size_t count = 0;
  for (const auto& turn : conversation.turns) {
    if (turn.speaker != Speaker::user) continue;
    for (const auto mark : {kImageMark, kVideoMark})
      for (auto at = turn.text.find(mark); at != turn.text.npos; at = turn.text.find(mark, at + 1))
        ++count;
  }
  return count;
}

void try_one(const std::string& text) {
  if (const auto open = open_conversation_from(text))
    TJ_CHECK(marks_in(*open) == open->shown.size() && open->turns.back().speaker == Speaker::user,
             "a file for each mark, and the user asks");
  auto conversation = conversation_from(text);
  if (!conversation) return;
  TJ_CHECK(marks_in(*conversation) == conversation->shown.size(), "a file for each mark");
  keep_newest_pictures(*conversation, 1);
  // Leaving a mark out may make another one of what stood around it, which is text then.
  TJ_CHECK(marks_in(*conversation) >= conversation->shown.size(), "no file without a mark");
  const bool has_answer = cut_behind_answer(*conversation, conversation->turns.size());
  TJ_CHECK(has_answer, "a conversation has an answer");
}

void try_index(const std::string& text) {
  const auto index = conversation_index_from(text);
  if (!index) return;
  std::string again = index_line(index->key) + "\n";
  for (const auto& [number, part] : index->parts) again += index_line(part) + "\n";
  const auto read = conversation_index_from(again);
  TJ_CHECK(read && read->key == index->key && read->parts == index->parts,
           "an index reads as it was written");
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tj::fuzz::MemoryFile file;
  const auto text = tj::fuzz::text_of(data, size);
  try_one(text);
  try_index(text);
  file.write(text);
  const auto opened = ConversationFile::open(file.path());
  if (!opened) return 0;
  for (std::int64_t i = 0; i < opened->count(); ++i)
    if (const auto one = opened->text(i)) try_one(*one);
  return 0;
}
