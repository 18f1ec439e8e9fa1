#include "trainer/workloads/qwen_vggt/conversation_encoder.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "trainer/data/bpe_files.h"
#include "trainer/data/conversation/conversation_videos.h"
#include "trainer/data/lerobot/resize_with_pad.h"
#include "trainer/data/word_table.h"
#include "trainer/process/durable_file.h"
#include "trainer/values/counter_random.h"
#include "trainer/workloads/qwen_vggt/pixel_patches.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kSmallFileBytesMax = 16 << 20;
/// What transformers loads beside tokenizer.json.
constexpr const char* kFilesBeside[] = {"tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "chat_template.json",
                                        "chat_template.jinja",
                                        "generation_config.json",
                                        "preprocessor_config.json",
                                        "video_preprocessor_config.json"};

Error wrong(std::string subject, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = std::move(subject)};
}

/// The tokenizer's tokens must be those that the model knows.
Result<void> check_ids(const BpeVocabulary& vocabulary, const ConversationShape& shape,
                       const std::string& subject) {
  const auto& ids = shape.ids;
  const std::pair<const char*, std::int32_t> wanted[] = {
      {"<|im_start|>", ids.turn_begin},       {"<|im_end|>", ids.turn_end},
      {"<|vision_start|>", ids.vision.begin}, {"<|vision_end|>", ids.vision.end},
      {"<|image_pad|>", ids.vision.image},    {"<|video_pad|>", ids.vision.video}};
  for (const auto& [token, id] : wanted) {
    const auto found = vocabulary.specials.find(token);
    if (found == vocabulary.specials.end())
      return wrong(subject, std::string("has no special token ") + token +
                                "; Qwen2.5-VL's own tokenizer.json has it");
    if (found->second != static_cast<std::uint32_t>(id))
      return wrong(subject, std::string("gives ") + token + " the id " +
                                std::to_string(found->second) + ", and the model knows it as " +
                                std::to_string(id));
  }
  if (vocabulary.size <= shape.vocabulary) return {};
  return wrong(subject, "has ids up to " + std::to_string(vocabulary.size - 1) +
                            ", and the model has " + std::to_string(shape.vocabulary) + " tokens");
}

std::map<std::string, std::string> files_beside(const fs::path& tokenizer,
                                                const BpeVocabulary& vocabulary) {
  std::error_code failure;
  const auto folder = fs::is_directory(tokenizer, failure) ? tokenizer : tokenizer.parent_path();
  std::map<std::string, std::string> files{{"tokenizer.json", vocabulary.tokenizer_json}};
  for (const char* const name : kFilesBeside) {
    if (!fs::is_regular_file(folder / name, failure)) continue;
    if (auto text = read_small_file(folder / name, kSmallFileBytesMax)) files[name] = *text;
  }
  return files;
}

ChatRole role_of(Speaker speaker) {
  switch (speaker) {
    case Speaker::system: return ChatRole::system;
    case Speaker::user: return ChatRole::user;
    case Speaker::assistant: return ChatRole::assistant;
  }
  return ChatRole::user;
}

PictureSize size_of(PictureSides sides) { return {.height = sides.height, .width = sides.width}; }
PictureSides sides_of(PictureSize size) { return {.height = size.height, .width = size.width}; }

/// A picture, or frames of a video, before pixels are read.
struct Shown {
  fs::path file;
  bool is_video = false;
  PictureSides sides;  // as they are
  PictureSides resized;
  VisionInput input;
  std::unique_ptr<Video> video = nullptr;
  std::vector<std::int64_t> frames = {};
};

/// Appends the planes of rows of pixels, resized.
void append_planes(std::span<const std::byte> rgb, PictureSides from, PictureSides to,
                   std::vector<std::uint8_t>& planes) {
  const auto fit = resized(rgb, size_of(from), size_of(to), PictureFilter::bicubic);
  const auto at = planes.size();
  planes.resize(at + fit.size());
  write_planes(fit, reinterpret_cast<std::byte*>(planes.data() + at));
}

std::uint64_t hash_of(const std::vector<std::uint8_t>& planes, PictureSides sides) {
  const std::string_view bytes(reinterpret_cast<const char*>(planes.data()), planes.size());
  const auto shape =
      static_cast<std::uint64_t>(sides.height) << 32 | static_cast<std::uint64_t>(sides.width);
  return std::max<std::uint64_t>(1, mixed(word_hash(bytes) ^ mixed(shape)));
}

}  // namespace

/// Shared by all threads.
struct ConversationEncoder::Parts {
  ConversationShape shape;
  ConversationOptions options;
  BpeVocabulary vocabulary;
  PictureReader pictures;
  ConversationVideos videos;
  std::map<std::string, std::string> files;
  std::mutex mutex = {};  // guards the one below
  std::vector<std::unique_ptr<BpeEncoder>> idle = {};

  std::unique_ptr<BpeEncoder> take_encoder() {
    {
      const std::scoped_lock lock(mutex);
      if (!idle.empty()) {
        auto encoder = std::move(idle.back());
        idle.pop_back();
        return encoder;
      }
    }
    return std::make_unique<BpeEncoder>(vocabulary);
  }
  void give_back(std::unique_ptr<BpeEncoder> encoder) {
    const std::scoped_lock lock(mutex);
    idle.push_back(std::move(encoder));
  }
};

namespace {
using Parts = ConversationEncoder::Parts;

/// One conversation on its way.
class Encoding {
 public:
  Encoding(Parts& parts, Conversation conversation, const FilePlace& place_of)
      : parts_(parts), conversation_(std::move(conversation)), place_of_(place_of) {}

  Result<EncodedConversation> run(ChatEnd end) {
    keep_newest_pictures(conversation_, parts_.options.history_pictures_max);
    for (const auto& file : conversation_.shown)
      if (const auto looked = look_at(file); !looked) return looked.error();
    if (const auto said = tokenize(end); !said) return said.error();
    for (const auto& each : shown_) made_.vision.push_back(each.input);
    auto positions = mrope_positions(made_.tokens.ids, made_.vision, parts_.shape.mrope);
    if (!positions) return positions.error();
    made_.positions = std::move(*positions);
    choose_frame_sides();
    for (const auto& each : shown_)
      if (const auto read = read_pixels(each); !read) return read.error();
    return std::move(made_);
  }

 private:
  /// Of pictures; their patches and tokens are those of videos, too.
  PatchRule rule() const {
    auto rule = parts_.shape.patches;
    rule.pixels_max = std::min(rule.pixels_max, parts_.options.pixels_max);
    rule.pixels_min = std::min(rule.pixels_min, rule.pixels_max);
    return rule;
  }

  Result<void> look_at(const ShownFile& file) {
    auto path = place_of_(file);
    if (!path) return path.error();
    Shown each{.file = std::move(*path),
               .is_video = file.is_video,
               .sides = {},
               .resized = {},
               .input = {}};
    if (const auto looked = file.is_video ? look_at_video(each) : look_at_picture(each); !looked)
      return looked;
    const auto frames = each.is_video ? static_cast<std::int64_t>(each.frames.size()) : 1;
    auto fit = resized_sides(
        each.sides, each.is_video ? rule_of_frames(rule(), frames, parts_.options.tokens_max,
                                                   parts_.options.seen)
                                  : rule());
    if (!fit) return wrong(each.file.string(), describe(fit.error()));
    each.resized = *fit;
    each.input.grid = video_grid(*fit, frames, rule());
    each.input.is_video = each.is_video;
    shown_.push_back(std::move(each));
    return {};
  }

  Result<void> look_at_picture(Shown& each) const {
    const auto size = parts_.pictures.size(each.file);
    if (!size) return size.error();
    each.sides = sides_of(*size);
    return {};
  }

  Result<void> look_at_video(Shown& each) const {
    auto video = parts_.videos.open(each.file);
    if (!video) return video.error();
    const auto shape = (*video)->shape();
    const auto& seen = parts_.options.seen;
    // Where no rate is known, each frame counts as one that is seen.
    const double rate = shape.rate.is_known()
                            ? static_cast<double>(shape.rate.numerator) / shape.rate.denominator
                            : seen.of_second;
    each.sides = {.height = shape.height, .width = shape.width};
    each.frames = seen_frames(shape.frames, rate, seen);
    each.input.seconds_of_frame =
        seconds_of_patch(static_cast<std::int64_t>(each.frames.size()), shape.frames, rate, rule());
    each.video = std::move(*video);
    return {};
  }

  Result<void> tokenize(ChatEnd end) {
    while (true) {
      if (const auto said = say(end); !said) return said;
      const auto count = static_cast<std::int64_t>(made_.tokens.ids.size());
      if (count <= parts_.options.tokens_max) return {};
      if (end == ChatEnd::open) return too_long(count, " tokens");
      if (!cut_behind_answer(conversation_, conversation_.turns.size() - 1))
        return too_long(count, " tokens up to its first answer");
      shown_.resize(conversation_.shown.size());
    }
  }

  Error too_long(std::int64_t count, const std::string& unit) const {
    std::int64_t of_videos = 0, frames = 0;
    for (const auto& each : shown_) {
      if (!each.is_video) continue;
      of_videos += token_count(each.input.grid, rule());
      frames += static_cast<std::int64_t>(each.frames.size());
    }
    auto what = "has " + std::to_string(count) + unit + ", and --seq-len allows " +
                std::to_string(parts_.options.tokens_max);
    if (frames > 0)
      what +=
          "; " + std::to_string(of_videos) + " of them are " + std::to_string(frames) +
          " frames of videos: --video-frames-max, --video-fps and --video-pixels-max lower that";
    return wrong("conversation", std::move(what));
  }

  Result<void> say(ChatEnd end) {
    std::vector<ChatTurn> turns;
    for (const auto& turn : conversation_.turns)
      turns.push_back({.role = role_of(turn.speaker), .text = turn.text});
    std::vector<ChatVision> vision;
    for (const auto& each : shown_)
      vision.push_back({.is_video = each.is_video, .tokens = token_count(each.input.grid, rule())});
    auto encoder = parts_.take_encoder();
    const auto encode = [&encoder](std::string_view text) {
      std::vector<std::int32_t> ids;
      encoder->encode(text, [&ids](auto more) { ids.insert(ids.end(), more.begin(), more.end()); });
      return ids;
    };
    auto said = chat_tokens(turns, vision, parts_.shape.ids, encode, end);
    parts_.give_back(std::move(encoder));
    if (!said) return said.error();
    made_.tokens = std::move(*said);
    return {};
  }

  void choose_frame_sides() {
    if (!parts_.shape.has_geometry) return;
    for (const auto& each : shown_)
      if (!each.is_video) made_.frame_sides = each.resized;
  }

  Result<void> read_pixels(const Shown& each) {
    std::vector<std::uint8_t> planes;
    if (const auto read = each.is_video ? read_video(each, planes) : read_picture(each, planes);
        !read)
      return read;
    const auto values = each.input.grid.patches() * rule().values_of_patch();
    const auto at = made_.patches.size();
    made_.patches.resize(at + static_cast<std::size_t>(values));
    write_pixel_patches(planes, each.resized, rule(), std::span(made_.patches).subspan(at));
    return {};
  }

  Result<void> read_video(const Shown& each, std::vector<std::uint8_t>& planes) const {
    const auto bytes = static_cast<std::size_t>(3 * each.sides.height * each.sides.width);
    std::vector<std::byte> rgb(bytes);
    for (const auto frame : each.frames) {
      if (auto read = each.video->read({&frame, 1}, rgb); !read) return read;
      append_planes(rgb, each.sides, each.resized, planes);
    }
    return {};
  }

  Result<void> read_picture(const Shown& each, std::vector<std::uint8_t>& planes) {
    const auto picture = parts_.pictures.read(each.file);
    if (!picture) return picture.error();
    if (sides_of(picture->size) != each.sides)
      return wrong(each.file.string(), "has changed while it was read");
    append_planes(picture->rgb, each.sides, each.resized, planes);
    if (!parts_.shape.has_geometry) return {};
    std::vector<std::uint8_t> frame;
    if (each.resized == made_.frame_sides)
      frame = planes;
    else
      append_planes(picture->rgb, each.sides, made_.frame_sides, frame);
    made_.frame_hashes.push_back(hash_of(frame, made_.frame_sides));
    made_.frames.push_back(std::move(frame));
    return {};
  }

  Parts& parts_;
  Conversation conversation_;
  const FilePlace& place_of_;
  std::vector<Shown> shown_;
  EncodedConversation made_;
};

}  // namespace

Result<ConversationEncoder> ConversationEncoder::open(const ConversationShape& shape,
                                                      const ConversationOptions& options) {
  if (options.tokenizer.empty())
    return wrong(
        "--tokenizer",
        "must name Qwen2.5-VL's tokenizer.json, or its folder; it lies beside the weights");
  auto vocabulary = read_bpe_vocabulary(tokenizer_json_of(options.tokenizer));
  if (!vocabulary) return vocabulary.error();
  if (const auto known = check_ids(*vocabulary, shape, "--tokenizer " + options.tokenizer); !known)
    return known.error();
  const auto pictures = PictureReader::open(
      options.picture_plugin.empty() ? default_picture_plugin() : options.picture_plugin);
  if (!pictures) return pictures.error();
  const auto videos =
      options.video_plugin.empty() ? VideoOpener::default_plugin() : options.video_plugin;
  auto files = files_beside(options.tokenizer, *vocabulary);
  return ConversationEncoder(std::shared_ptr<Parts>(new Parts{.shape = shape,
                                                              .options = options,
                                                              .vocabulary = std::move(*vocabulary),
                                                              .pictures = *pictures,
                                                              .videos = ConversationVideos(videos),
                                                              .files = std::move(files)}));
}

Result<EncodedConversation> ConversationEncoder::encode(Conversation conversation,
                                                        const FilePlace& place_of,
                                                        ChatEnd end) const {
  return Encoding(*parts_, std::move(conversation), place_of).run(end);
}

const ConversationShape& ConversationEncoder::shape() const { return parts_->shape; }
bool ConversationEncoder::lacks_videos() const { return parts_->videos.lacks_plugin(); }
const std::string& ConversationEncoder::digest() const { return parts_->vocabulary.sha256; }
const BpeVocabulary& ConversationEncoder::vocabulary() const { return parts_->vocabulary; }
const std::map<std::string, std::string>& ConversationEncoder::files() const {
  return parts_->files;
}

fs::path tokenizer_json_of(const std::string& path) {
  std::error_code failure;  // a folder has vocab.json and merges.txt, too, which say less
  return fs::is_directory(path, failure) ? fs::path(path) / "tokenizer.json" : fs::path(path);
}

}  // namespace tj::trainer
