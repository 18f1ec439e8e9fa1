#include "trainer/workloads/qwen_vggt/conversation_data.h"

#include "trainer/workload/made_up_samples.h"

namespace tj::trainer {
namespace {

constexpr Flag kFlags[] = {
    {.name = "--tokenizer", .help = "tokenizer.json, or its folder"},
    {.name = "--data-root", .help = "folder of the pictures"},
    {.name = "--seq-len", .help = "tokens of a sample at most (4096)"},
    {.name = "--max-history-images", .help = "pictures before the newest (8)"},
    {.name = "--image-pixels-max", .help = "of a picture once resized (451584)"},
    {.name = "--held-out", .help = "share of the conversations that are not trained on (0)"},
};

}  // namespace

std::span<const Flag> conversation_flags() { return kFlags; }

ConversationOptions read_conversation_flags(FlagReader& reader) {
  ConversationOptions options;
  options.tokens_max = reader.whole("--seq-len", {.value = "4096"}, {1, kCountMax});
  options.history_pictures_max =
      reader.whole("--max-history-images", {.value = "8"}, {0, kCountMax});
  options.pixels_max = reader.whole("--image-pixels-max", {.value = "451584"}, {784, kCountMax});
  options.held_out_share = reader.real("--held-out", {.value = "0"}, {0, 0.5}, kShareRule);
  return options;
}

OpenedConversations open_conversations(const DataPaths& data, const std::vector<std::string>&,
                                       const ConversationShape&, const ConversationOptions&) {
  return {.source = nullptr,
          .failure = bad_data(
              Error{.code = Code::invalid, .message = "can't be read yet", .subject = data.flag})};
}

ConversationSize largest_conversation(const ConversationShape& shape,
                                      const ConversationOptions& options) {
  const auto side = shape.patches.side_of_token();
  std::int64_t tokens = 1;
  while ((tokens + 1) * side * (tokens + 1) * side <= options.pixels_max) ++tokens;
  ConversationSize size;
  size.sides = {.height = tokens * side, .width = tokens * side};
  size.pictures = options.history_pictures_max + 1;
  while (size.pictures > 1 && size.pictures * (tokens * tokens + 2) + 16 > options.tokens_max)
    --size.pictures;
  size.patches = size.pictures * tokens * tokens * shape.patches.patches_of_token();
  size.tokens = options.tokens_max;
  return size;
}

std::unique_ptr<SampleSource> make_up_conversations(const ConversationShape&,
                                                    const ConversationOptions&) {
  return std::make_unique<MadeUpSamples>(std::vector<MadeUpTensor>{}, 1);
}

struct ConversationPrompts::Parts {};

Result<ConversationPrompts> ConversationPrompts::open(const ConversationShape&,
                                                      const ConversationOptions&) {
  return Error{.code = Code::invalid, .message = "can't be read yet", .subject = "--tokenizer"};
}

Result<SampleBatch> ConversationPrompts::batch(std::span<const ChatTurn>,
                                               std::span<const std::filesystem::path>) const {
  return SampleBatch{};
}

std::string ConversationPrompts::text(std::span<const std::int32_t>) const { return ""; }

}  // namespace tj::trainer
