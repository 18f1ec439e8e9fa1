#include "trainer/workloads/qwen_vggt/conversation_data.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/data/conversation/conversation_index.h"
#include "trainer/values/counter_random.h"
#include "trainer/values/share.h"
#include "trainer/workloads/qwen_vggt/conversation_samples.h"
#include "trainer/workloads/qwen_vggt/conversation_tensors.h"

namespace tj::trainer {
namespace {

constexpr std::size_t kNamedMax = 3;  // of the conversations that can't be used, in one message
constexpr std::int64_t kSideOfTokenMin = 28;

constexpr Flag kFlags[] = {
    {.name = "--tokenizer", .help = "Qwen2.5-VL's tokenizer.json, or its folder"},
    {.name = "--data-root",
     .help = "folder in which the paths of pictures begin, as DATA_ROOT (that of each file)"},
    {.name = "--data-index",
     .help = "folder of what trainer prepare conversations wrote (that of each file)"},
    {.name = "--seq-len",
     .help = "tokens of one conversation at most; later turns are left out (8192)"},
    {.name = "--max-history-images",
     .help = "pictures of a conversation before its newest that are kept (8)"},
    {.name = "--image-pixels-max", .help = "of one picture, once it is resized (451584)"},
    {.name = "--video-fps", .help = "frames of one second of a video that are seen (2)"},
    {.name = "--video-frames-min", .help = "of one video, if it has so many (4)"},
    {.name = "--video-frames-max", .help = "of one video, spread evenly (32)"},
    {.name = "--video-pixels-max", .help = "of one frame, once it is resized (602112)"},
    {.name = "--held-out", .help = "share of the conversations that is kept for evaluations (0)"},
    {.name = "--bad-data-max",
     .help = "share of the conversations that may be damaged, or lack files: 1% or 0.01 (1%)"},
};

Error wrong(std::string subject, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = std::move(subject)};
}

PatchRule rule_of(const ConversationShape& shape, const ConversationOptions& options) {
  auto rule = shape.patches;
  rule.pixels_max = std::min(rule.pixels_max, options.pixels_max);
  rule.pixels_min = std::min(rule.pixels_min, rule.pixels_max);
  return rule;
}

/// What samples depend on beside the data.
std::string words_of(const ConversationShape& shape, const ConversationOptions& options) {
  const auto rule = rule_of(shape, options);
  std::string words = options.data_root;
  for (const auto number :
       {rule.pixels_min, rule.pixels_max, options.tokens_max, options.history_pictures_max,
        options.seen.min, options.seen.max, options.seen.pixels_max})
    words += " " + std::to_string(number);
  return words + " " + std::to_string(options.seen.of_second);
}

/// Every so many-th is held out, as of episodes of robots.
bool is_held_out(std::int64_t number, double share) {
  return std::floor(static_cast<double>(number + 1) * share) >
         std::floor(static_cast<double>(number) * share);
}

class ConversationOpener {
 public:
  ConversationOpener(const DataPaths& data, const ConversationShape& shape,
                     const ConversationOptions& options)
      : data_(data), shape_(shape), options_(options) {}

  Result<std::unique_ptr<SampleSource>> open(bool wants_held_out) {
    auto encoder = ConversationEncoder::open(shape_, options_);
    if (!encoder) return encoder.error();
    files_ = encoder->files();
    auto set = ConversationSet::open(
        {.paths = data_.paths, .flag = data_.flag, .data_root = options_.data_root});
    if (!set) return set.error();
    if (set->count() > std::numeric_limits<std::int32_t>::max())
      return wrong(data_.flag, "has " + grouped(set->count()) +
                                   " conversations; a sample's number has 31 bits");
    auto broken = find_broken(*set);
    if (!broken) return broken.error();
    auto numbers = numbers_of(*set, wants_held_out);
    if (numbers.empty())
      return wrong("--held-out", "leaves none of " + grouped(set->count()) + " conversations " +
                                     (wants_held_out ? "for evaluations; a greater share does"
                                                     : "to train on; a smaller share does"));
    tell(*set, numbers.size());
    return std::unique_ptr<SampleSource>(std::make_unique<ConversationSamples>(
        std::move(*set), std::move(*encoder),
        ConversationSamples::Options{
            .numbers = std::move(numbers), .bad = *broken, .rule = words_of(shape_, options_)}));
  }
  std::vector<Setting> take_settings() { return std::move(settings_); }
  std::map<std::string, std::string> take_files() { return std::move(files_); }

 private:
  /// By the indices that are there and are of these files.
  Result<BadConversations> find_broken(const ConversationSet& set) {
    BadConversations bad{.count = 0,
                         .of = static_cast<std::size_t>(set.count()),
                         .share_max = options_.bad_share_max};
    std::int64_t before = 0;
    std::size_t with_index = 0, stale = 0;
    std::string named;
    for (const auto& file : set.files()) {
      const auto index =
          read_conversation_index(conversation_index_path(file.path(), options_.index));
      const bool is_own = index && index->key.digest == file.digest() &&
                          index->key.count == file.count() &&
                          index->key.data_root == options_.data_root;
      with_index += is_own ? 1 : 0;
      stale += index && !is_own ? 1 : 0;
      if (is_own)
        for (const auto& [number, part] : index->parts)
          for (const auto& [at, why] : part.broken) {
            broken_.push_back(before + at);
            if (broken_.size() <= kNamedMax)
              named += (named.empty() ? "" : "; ") + file.name(at) + ": " + why;
          }
      before += file.count();
    }
    bad.count = broken_.size();
    std::ranges::sort(broken_);
    if (bad.are_too_many()) return wrong(data_.flag, bad.text() + ": " + named);
    const auto files = std::to_string(set.files().size());
    if (with_index > 0)
      settings_.push_back({"conversations by index",
                           std::to_string(with_index) + " of " + files + " files",
                           "trainer prepare conversations"});
    if (stale > 0)
      settings_.push_back({"indices of other data",
                           std::to_string(stale) + " of " + files +
                               " files: trainer prepare conversations makes them anew",
                           "computed"});
    return bad;
  }

  std::vector<std::int64_t> numbers_of(const ConversationSet& set, bool wants_held_out) const {
    const bool is_split = options_.held_out_share > 0 && (wants_held_out || !data_.is_eval);
    std::vector<std::int64_t> numbers;
    for (std::int64_t number = 0; number < set.count(); ++number) {
      if (is_split && is_held_out(number, options_.held_out_share) != wants_held_out) continue;
      if (std::ranges::binary_search(broken_, number)) continue;
      numbers.push_back(number);
    }
    return numbers;
  }

  void tell(const ConversationSet& set, std::size_t used) {
    settings_.push_back({"conversations",
                         grouped(static_cast<std::int64_t>(used)) + " of " + grouped(set.count()) +
                             " in " + std::to_string(set.files().size()) +
                             (set.files().size() == 1 ? " file" : " files"),
                         data_.flag});
    if (!broken_.empty())
      settings_.push_back({"conversations left out",
                           grouped(static_cast<std::int64_t>(broken_.size())) + ", by their index",
                           "--bad-data-max"});
  }

  const DataPaths& data_;
  const ConversationShape& shape_;
  const ConversationOptions& options_;
  std::vector<std::int64_t> broken_;  // ascending
  std::vector<Setting> settings_;
  std::map<std::string, std::string> files_;
};

/// As large as samples get, of words and pixels by chance.
class MadeUpConversations final : public SampleSource {
 public:
  MadeUpConversations(const ConversationShape& shape, const ConversationOptions& options)
      : shape_(shape),
        rule_(rule_of(shape, options)),
        size_(largest_conversation(shape, options)) {}

  std::int64_t sample_count() const override { return kCount; }
  Result<SampleBatch> read(std::span<const Sample> samples) const override {
    std::vector<EncodedConversation> made;
    std::vector<std::int64_t> numbers;
    for (const auto& sample : samples) {
      auto one = made_up(static_cast<std::uint64_t>(sample.index));
      if (!one) return one.error();
      made.push_back(std::move(*one));
      numbers.push_back(sample.index);
    }
    return conversation_batch(made, numbers, shape_.patches);
  }
  DataMark mark() const override {
    return {.unit = "conversations", .count = kCount, .digest = ""};
  }
  std::string description() const override { return "conversations that are made up"; }

 private:
  static constexpr std::int64_t kCount = 1 << 20;

  Result<EncodedConversation> made_up(std::uint64_t key) const {
    EncodedConversation made;
    const auto& ids = shape_.ids;
    const auto next = [&key](std::uint64_t below) { return (key = mixed(key + 1)) % below; };
    const auto add = [&made](std::int32_t id, bool is_learned) {
      made.tokens.ids.push_back(id);
      made.tokens.labels.push_back(is_learned ? id : kNoLabel);
    };
    const auto grid = image_grid(size_.sides, rule_);
    for (std::int64_t picture = 0; picture < size_.pictures; ++picture) {
      add(ids.vision.begin, false);
      for (auto pads = token_count(grid, rule_); pads > 0; --pads) add(ids.vision.image, false);
      add(ids.vision.end, false);
      made.vision.push_back({.grid = grid});
    }
    const auto least = std::min({ids.turn_begin, ids.turn_end, ids.vision.begin, ids.vision.end,
                                 ids.vision.image, ids.vision.video});
    const auto words = static_cast<std::uint64_t>(std::max<std::int32_t>(1, least));
    while (static_cast<std::int64_t>(made.tokens.ids.size()) < size_.tokens)
      add(static_cast<std::int32_t>(next(words)), true);
    const auto bytes = size_.patches * rule_.values_of_patch();
    for (std::int64_t at = 0; at < bytes; ++at)
      made.patches.push_back(static_cast<std::uint8_t>(next(256)));
    if (shape_.has_geometry) add_frames(made, next(UINT64_MAX));
    auto positions = mrope_positions(made.tokens.ids, made.vision, shape_.mrope);
    if (!positions) return positions.error();
    made.positions = std::move(*positions);
    return made;
  }

  void add_frames(EncodedConversation& made, std::uint64_t key) const {
    if (size_.pictures == 0) return;
    made.frame_sides = size_.sides;
    const auto bytes = static_cast<std::size_t>(kColours * size_.sides.height * size_.sides.width);
    for (std::int64_t picture = 0; picture < size_.pictures; ++picture) {
      made.frames.emplace_back(bytes, static_cast<std::uint8_t>(picture));
      made.frame_hashes.push_back(std::max<std::uint64_t>(1, key = mixed(key + 1)));
    }
  }

  ConversationShape shape_;
  PatchRule rule_;
  ConversationSize size_;
};

}  // namespace

std::span<const Flag> conversation_flags() { return kFlags; }

ConversationOptions read_conversation_flags(FlagReader& reader) {
  ConversationOptions options;
  const auto text = [&reader](const char* flag, std::string& into) {
    if (reader.is_given(flag)) into = reader.text(flag);
  };
  const auto whole = [&reader](const char* flag, std::int64_t& into, std::int64_t least,
                               std::int64_t most = kCountMax) {
    into = reader.whole(flag, {.value = std::to_string(into)}, {least, most});
  };
  text("--tokenizer", options.tokenizer);
  if (reader.is_given("--data-root") && reader.given("--data-root").empty())
    reader.fail("--data-root", "",
                "it must be the folder in which the pictures' paths begin: is DATA_ROOT set on "
                "this node?");
  else
    text("--data-root", options.data_root);
  text("--data-index", options.index);
  whole("--seq-len", options.tokens_max, 8);
  whole("--max-history-images", options.history_pictures_max, 0);
  whole("--image-pixels-max", options.pixels_max, kSideOfTokenMin * kSideOfTokenMin);
  auto& seen = options.seen;
  seen.of_second = reader.real("--video-fps", {.value = "2"}, {0.001, 1000},
                               "it must be a number from 0.001 to 1000");
  whole("--video-frames-min", seen.min, 1, kSeenFramesMax);
  whole("--video-frames-max", seen.max, 1, kSeenFramesMax);
  whole("--video-pixels-max", seen.pixels_max, kSideOfTokenMin * kSideOfTokenMin);
  options.held_out_share = reader.real("--held-out", {.value = "0"}, {0, 0.999}, kShareRule);
  options.bad_share_max =
      reader.choice("--bad-data-max", "1%", "a share such as 1% or 0.01", share_from);
  return options;
}

OpenedConversations open_conversations(const DataPaths& data,
                                       const std::vector<std::string>& training_paths,
                                       const ConversationShape& shape,
                                       const ConversationOptions& options) {
  const bool is_of_training = std::ranges::any_of(data.paths, [&](const std::string& path) {
    return std::ranges::find(training_paths, path) != training_paths.end();
  });
  ConversationOpener opener(data, shape, options);
  auto source = opener.open(data.is_eval && is_of_training && options.held_out_share > 0);
  if (!source) return {.source = {}, .failure = data_failure(source.error())};
  return {.source = std::move(*source),
          .failure = {},
          .settings = opener.take_settings(),
          .files = opener.take_files()};
}

ConversationSize largest_conversation(const ConversationShape& shape,
                                      const ConversationOptions& options) {
  constexpr std::int64_t kTokensAround = 2;  // a picture
  constexpr std::int64_t kTextMin = 16;
  const auto rule = rule_of(shape, options);
  const auto side = rule.side_of_token();
  const auto tokens = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::sqrt(static_cast<double>(rule.pixels_max)) /
                                   static_cast<double>(side)));
  const auto of_picture = tokens * tokens + kTokensAround;
  const auto fitting = std::max<std::int64_t>(0, (options.tokens_max - kTextMin) / of_picture);
  const auto pictures = std::min(options.history_pictures_max + 1, fitting);
  return {.tokens = options.tokens_max,
          .learned = options.tokens_max - pictures * of_picture,
          .pictures = pictures,
          .patches = pictures * tokens * tokens * rule.patches_of_token(),
          .sides = {.height = tokens * side, .width = tokens * side}};
}

std::unique_ptr<SampleSource> make_up_conversations(const ConversationShape& shape,
                                                    const ConversationOptions& options) {
  return std::make_unique<MadeUpConversations>(shape, options);
}

}  // namespace tj::trainer
