// What a user says of conversations with pictures, and the samples that come of them: the one place
// where --data of a vision-language model is opened. No torch.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/conversation/conversation.h"
#include "trainer/workload/flag.h"
#include "trainer/workload/flag_reader.h"
#include "trainer/workload/workload.h"
#include "trainer/workloads/qwen_vggt/chat.h"
#include "trainer/workloads/qwen_vggt/image_grid.h"
#include "trainer/workloads/qwen_vggt/mrope.h"
#include "trainer/workloads/qwen_vggt/seen_frames.h"

namespace tj::trainer {

/// What the model is made for. `mrope.ids` are those of `ids.vision`; the tokenizer must give all
/// of `ids` to <|im_start|>, <|im_end|>, <|vision_start|>, <|vision_end|>, <|image_pad|> and
/// <|video_pad|>.
struct ConversationShape {
  PatchRule patches;
  ChatIds ids;
  MropeRule mrope;
  std::int64_t vocabulary = 151'936;
  bool has_geometry = false;  // a VGGT sees the frames, too
};

/// As the flags say.
struct ConversationOptions {
  std::string tokenizer;                  // tokenizer.json, or its folder
  std::string data_root;                  // of the pictures; empty: the folder of each file
  std::string index;                      // of `trainer prepare conversations`; empty: beside each
  std::int64_t tokens_max = 8192;         // of a sample
  std::int64_t history_pictures_max = 8;  // before the newest
  std::int64_t pixels_max = 576 * 784;    // of a picture once resized; lowers PatchRule's
  SeenFrames seen = {};                   // of a video
  double held_out_share = 0;
  double bad_share_max = 0.01;
  // Empty: libtrainer_picture.so and libtrainer_video.so beside this program.
  std::filesystem::path picture_plugin = {};
  std::filesystem::path video_plugin = {};
};

/// --tokenizer, --data-root, --data-index, --seq-len, --max-history-images, --image-pixels-max,
/// --video-frames-min, --video-frames-max, --video-fps, --video-pixels-max, --held-out,
/// --bad-data-max.
std::span<const Flag> conversation_flags();
ConversationOptions read_conversation_flags(FlagReader& reader);

/// The tensors of B samples, in this order. T: tokens of the longest of the batch. P: patches of
/// the sample that has the most, G: pictures and videos, S: frames for VGGT; each may be 0, and
/// what is behind a sample's own is 0.
enum ConversationTensor : std::size_t {
  /// int32 [B, T]; 0 behind a sample's end
  kConversationTokens,
  /// int32 [B, 3, T]: mrope_positions() of each
  kConversationPositions,
  /// int32 [B, T]: the token itself where it is learned (chat_targets()), else kNoLabel
  kConversationLabels,
  /// uint8 [B, P, values of a patch]: pixels 0 to 255 in the order of write_patches(), colour by
  /// colour; (pixel / 255 - mean) / deviation makes the tower's input (patch_values())
  kConversationPatches,
  /// int32 [B, G, 4]: frames, rows, columns (VisionGrid), 1 for a video; rows are 0 behind the last
  kConversationGrids,
  /// uint8 [B, S, 3, height, width]: the sample's still pictures from the oldest to the newest, all
  /// of the newest's resized sides: rows x patch_side, columns x patch_side of the last grid that
  /// is no video. Height and width are the largest of the batch: a sample's own lie at the top
  /// left. S is 0 where !has_geometry
  kConversationFrames,
  /// int32 [B, S, 2]: 64 bits of a hash of each frame's pixels and sides, high half first: equal
  /// frames of different histories have equal ones. 0, 0: there is no such frame
  kConversationFrameHashes,
  /// int32 [B]: the samples' own numbers
  kConversationNumbers,
  kConversationTensors  // how many
};

/// The weight of a batch is the number of its learned tokens, 1 at least for each sample.
struct OpenedConversations {
  std::unique_ptr<SampleSource> source;
  std::optional<Failure> failure = {};
  std::vector<Setting> settings = {};  // rows of the start-up table
  /// tokenizer.json, and those of tokenizer_config.json, chat_template.json(inja) and the like that
  /// lie beside it: for each checkpoint, so that transformers opens it.
  std::map<std::string, std::string> files = {};
};

/// `training_paths`: those of --data; an evaluation of one of them is of its held-out
/// conversations.
OpenedConversations open_conversations(const DataPaths& data,
                                       const std::vector<std::string>& training_paths,
                                       const ConversationShape& shape,
                                       const ConversationOptions& options);

/// Samples that nobody has, as large as they can be: history_pictures_max + 1 square pictures of
/// pixels_max, and text up to tokens_max. No files, no tokenizer.
std::unique_ptr<SampleSource> make_up_conversations(const ConversationShape& shape,
                                                    const ConversationOptions& options);

/// What the largest sample holds: for costs in memory and time.
struct ConversationSize {
  std::int64_t tokens = 0;
  std::int64_t learned = 0;  // of them: all that are of no picture
  std::int64_t pictures = 0;
  std::int64_t patches = 0;  // of all pictures
  PictureSides sides;        // of one
};
ConversationSize largest_conversation(const ConversationShape& shape,
                                      const ConversationOptions& options);

/// For generation: one open conversation (ChatEnd::open) as a batch of one sample, weight 0.
class ConversationPrompts {
 public:
  /// Fails with Code::not_found or Code::invalid, and the flag or file.
  static Result<ConversationPrompts> open(const ConversationShape& shape,
                                          const ConversationOptions& options);
  /// `open`: as open_conversation_from() reads one; relative paths begin in `folder`.
  Result<SampleBatch> batch(Conversation open, const std::filesystem::path& folder) const;
  /// The text of ids; special tokens have none.
  std::string text(std::span<const std::int32_t> ids) const;

  struct Parts;

 private:
  explicit ConversationPrompts(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace tj::trainer
