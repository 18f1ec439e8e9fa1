// From a conversation and the files that it shows to what a Qwen2.5-VL trains on: tokens, labels,
// positions, patches. No torch.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/bpe.h"
#include "trainer/data/conversation/conversation.h"
#include "trainer/data/picture/picture.h"
#include "trainer/workloads/qwen_vggt/conversation_data.h"

namespace tj::trainer {

struct EncodedConversation {
  ChatTokens tokens;
  MropePositions positions;
  std::vector<VisionInput> vision;    // in the order of their pads
  std::vector<std::uint8_t> patches;  // write_pixel_patches() of each, behind each other
  /// Of still pictures, oldest first, all of one size: uint8 [3, height, width] each.
  PictureSides frame_sides;
  std::vector<std::vector<std::uint8_t>> frames;
  std::vector<std::uint64_t> frame_hashes;  // none is 0
};

/// Where a file lies that is shown.
using FilePlace = std::function<Result<std::filesystem::path>(const ShownFile&)>;

class ConversationEncoder {
 public:
  /// Fails with Code::not_found or Code::invalid, and the flag or the file.
  static Result<ConversationEncoder> open(const ConversationShape& shape,
                                          const ConversationOptions& options);

  /// On any thread. A complete one is cut behind its last answer that tokens_max allows. The error
  /// is about the conversation, without its name, or about a file.
  Result<EncodedConversation> encode(Conversation conversation, const FilePlace& place_of,
                                     ChatEnd end) const;

  const ConversationShape& shape() const;
  /// SHA-256 of the tokenizer.
  const std::string& digest() const;
  /// True once a video came and nothing was there to read it: no conversation is to blame.
  bool lacks_videos() const;
  const BpeVocabulary& vocabulary() const;
  /// Files for checkpoints: the tokenizer's, name -> content.
  const std::map<std::string, std::string>& files() const;

  struct Parts;

 private:
  explicit ConversationEncoder(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<Parts> parts_;
};

/// The file that --tokenizer names, itself or by its folder.
std::filesystem::path tokenizer_json_of(const std::string& path);

}  // namespace tj::trainer
