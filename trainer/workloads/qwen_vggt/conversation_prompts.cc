// ConversationPrompts: one open conversation for whoever goes on with it.
#include "trainer/data/bpe_decode.h"
#include "trainer/data/conversation/conversation_set.h"
#include "trainer/workloads/qwen_vggt/conversation_tensors.h"

namespace tj::trainer {

struct ConversationPrompts::Parts {
  ConversationEncoder encoder;
  TokenBytes bytes;
};

Result<ConversationPrompts> ConversationPrompts::open(const ConversationShape& shape,
                                                      const ConversationOptions& options) {
  auto encoder = ConversationEncoder::open(shape, options);
  if (!encoder) return encoder.error();
  auto bytes = TokenBytes::read(tokenizer_json_of(options.tokenizer));
  if (!bytes) return bytes.error();
  return ConversationPrompts(std::make_shared<const Parts>(
      Parts{.encoder = std::move(*encoder), .bytes = std::move(*bytes)}));
}

Result<SampleBatch> ConversationPrompts::batch(Conversation open,
                                               const std::filesystem::path& folder) const {
  const FilePlace place = [&](const ShownFile& file) { return shown_path(file, folder); };
  std::vector<EncodedConversation> encoded;
  auto one = parts_->encoder.encode(std::move(open), place, ChatEnd::open);
  if (!one) return one.error();
  encoded.push_back(std::move(*one));
  const std::int64_t numbers[] = {0};
  auto batch = conversation_batch(encoded, numbers, parts_->encoder.shape().patches);
  batch.weight = 0;
  return batch;
}

std::string ConversationPrompts::text(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const auto id : ids) {
    const auto bytes = parts_->bytes.find(id);
    if (bytes && !parts_->encoder.vocabulary().specials.contains(std::string(*bytes)))
      text += *bytes;
  }
  return text;
}

}  // namespace tj::trainer
