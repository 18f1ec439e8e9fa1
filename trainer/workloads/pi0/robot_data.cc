#include "trainer/workloads/pi0/robot_data.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trainer/data/lerobot/json_place.h"
#include "trainer/data/lerobot/prepare_lerobot.h"
#include "trainer/data/parquet/parquet_plugin.h"
#include "trainer/data/prompt/sentence_model.h"
#include "trainer/launch/host.h"

namespace tj::trainer {
namespace {

constexpr int kReadThreadsMax = 8;
constexpr const char* kNone = "none";
// Of kPolicyFile, beside those of statistics_json().
constexpr const char* kNormalisationField = "normalisation";
constexpr const char* kCutField = "may_cut_prompts";

constexpr Flag kFlags[] = {
    {.name = "--tokenizer",
     .help = "SentencePiece model of the prompts, as PaliGemma's tokenizer.model"},
    {.name = "--camera-map",
     .help = "which camera of the data set each of the policy's is, as "
             "base_0_rgb=observation.images.top,right_wrist_0_rgb=none (by equal names)"},
    {.name = "--state-feature", .help = "feature of the data set (observation.state)"},
    {.name = "--action-feature", .help = "feature of the data set (action)"},
    {.name = "--delta-actions",
     .help = "actions minus the state: counts of dimensions, as 6,-1 for six that are and one that "
             "is not (none)"},
    {.name = "--normalisation",
     .help = "mean-std, quantiles or none (mean-std; of pi05 quantiles)"},
    {.name = "--statistics",
     .help = "file of `trainer prepare lerobot` to normalise by (those in meta/ of the data set)"},
    {.name = "--held-out", .help = "share of the episodes that is kept for evaluations (0)"},
    {.name = "--no-augmentation", .help = "pictures as they are", .is_switch = true},
    {.name = "--cut-prompts",
     .help = "prompts that are too long lose their end",
     .is_switch = true},
};

constexpr std::pair<std::string_view, Normalisation> kNormalisations[] = {
    {"mean-std", Normalisation::mean_std},
    {"quantiles", Normalisation::quantiles},
    {kNone, Normalisation::none},
};

std::optional<Normalisation> normalisation_named(std::string_view text) {
  for (const auto& [name, normalisation] : kNormalisations)
    if (name == text) return normalisation;
  return std::nullopt;
}

std::optional<std::vector<std::pair<std::string, std::string>>> camera_map_from(
    const std::string& text) {
  std::vector<std::pair<std::string, std::string>> map;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto equals = part.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == part.size())
      return std::nullopt;
    map.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return map;
}

Error wrong(const std::string& subject, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = subject};
}

/// A camera is the feature of the same name, or of that name below observation.images.
std::string feature_of(const LeRobotInfo& info, const std::string& camera) {
  for (const auto& name : {camera, "observation.images." + camera, "observation." + camera}) {
    const auto found = info.features.find(name);
    if (found != info.features.end() && found->second.is_camera()) return name;
  }
  return "";
}

std::string slots_text(const std::vector<CameraSlot>& slots) {
  std::string text;
  for (const auto& slot : slots)
    text += (text.empty() ? "" : ", ") + slot.name + " is " +
            (slot.feature.empty() ? "missing" : slot.feature);
  return text;
}

class RobotDataOpener {
 public:
  RobotDataOpener(const DataPaths& data, const RobotPolicyShape& shape,
                  const RobotDataOptions& options)
      : data_(data), shape_(shape), options_(options) {}

  Result<std::unique_ptr<RobotSamples>> open(bool is_held_out) {
    if (data_.paths.size() != 1)
      return wrong(data_.flag,
                   "must name one data set, and names " + std::to_string(data_.paths.size()));
    auto set = open_lerobot_set({.folder = data_.paths.front(),
                                 .flag = data_.flag,
                                 .state = options_.state,
                                 .action = options_.action,
                                 .parquet_plugin = default_parquet_plugin(),
                                 .threads = std::min(usable_cores(), kReadThreadsMax)});
    if (!set) return set.error();
    auto frames_options = options_for(*set, is_held_out);
    if (!frames_options) return frames_options.error();
    const auto statistics = find_statistics(*set, frames_options->is_delta);
    if (!statistics) return statistics.error();
    const auto model = open_model();
    if (!model) return model.error();
    frames_options->prompt.bos = (*model)->bos();
    const auto digest = (*model)->sha256() + " " + statistics_json(*statistics);
    const EncodeText encode = [shared = *model](std::string_view text) {
      return shared->encode(text);
    };
    VideoOpener opener(VideoOpener::default_plugin());
    auto frames =
        RobotFrames::make(std::move(*set), *statistics, encode, opener, std::move(*frames_options));
    if (!frames) return frames.error();
    if ((*frames)->count() > std::numeric_limits<std::int32_t>::max())
      return wrong(data_.flag + " " + data_.paths.front(),
                   "has " + grouped((*frames)->count()) + " frames; a sample's number has 31 bits");
    tell(**frames, *statistics);
    files_[kPolicyFile] = policy_json({.statistics = *statistics,
                                       .normalisation = options_.normalisation,
                                       .may_cut_prompts = options_.may_cut_prompts});
    files_[kPromptModelFile] = (*model)->content();
    return std::make_unique<RobotSamples>(std::move(*frames), digest);
  }
  std::vector<Setting> take_settings() { return std::move(settings_); }
  std::map<std::string, std::string> take_files() { return std::move(files_); }

 private:
  Result<std::shared_ptr<const SentenceModel>> open_model() const {
    if (options_.tokenizer.empty())
      return wrong("--tokenizer",
                   "must name the SentencePiece model of the prompts; PaliGemma's is a file of "
                   "google/paligemma-3b-pt-224, tokenizer.model");
    auto model = SentenceModel::open(options_.tokenizer, default_sentencepiece_plugin());
    if (!model) return model.error();
    if (model->vocabulary() > shape_.vocabulary)
      return wrong("--tokenizer " + options_.tokenizer,
                   "has " + std::to_string(model->vocabulary()) + " pieces, and the policy knows " +
                       std::to_string(shape_.vocabulary));
    return std::make_shared<const SentenceModel>(std::move(*model));
  }

  Result<RobotFramesOptions> options_for(const LeRobotSet& set, bool is_held_out) const {
    auto mask = delta_mask_from(options_.delta_actions);
    if (!mask) return mask.error();
    if (static_cast<std::int64_t>(mask->size()) > set.action.width)
      return wrong("--delta-actions " + options_.delta_actions,
                   "says " + std::to_string(mask->size()) + " dimensions, and " + options_.action +
                       " has " + std::to_string(set.action.width));
    mask->resize(static_cast<std::size_t>(set.action.width));
    RobotFramesOptions made{.picture = shape_.picture,
                            .horizon = shape_.horizon,
                            .state_width = shape_.state_width,
                            .action_width = shape_.action_width,
                            .normalisation = options_.normalisation,
                            .is_delta = std::move(*mask),
                            .prompt = {.kind = shape_.prompt,
                                       .length = shape_.prompt_tokens,
                                       .may_be_cut = options_.may_cut_prompts},
                            .is_augmented = options_.is_augmented && !data_.is_eval,
                            .flag = data_.flag};
    std::error_code failure;  // beside the statistics, where --out of `trainer prepare` was
    const auto index = std::filesystem::path(options_.statistics).parent_path() / kVideoIndexFile;
    if (!options_.statistics.empty() && std::filesystem::exists(index, failure))
      made.video_index = index;
    auto slots = slots_of(set);
    if (!slots) return slots.error();
    made.cameras = std::move(*slots);
    auto split = split_episodes(set.meta.episodes.size(), options_.held_out_share);
    if (options_.held_out_share > 0 && (is_held_out || !data_.is_eval))
      made.episodes = is_held_out ? std::move(split.held_out) : std::move(split.train);
    if (options_.held_out_share > 0 && split.held_out.empty() && is_held_out &&
        made.episodes.empty())
      return wrong("--held-out", "leaves none of " + std::to_string(set.meta.episodes.size()) +
                                     " episodes for evaluations; a greater share does");
    return made;
  }

  Result<std::vector<CameraSlot>> slots_of(const LeRobotSet& set) const {
    std::vector<CameraSlot> slots;
    for (const auto& camera : shape_.cameras)
      slots.push_back({.name = camera, .feature = feature_of(set.info, camera)});
    for (const auto& [camera, feature] : options_.camera_map) {
      const auto slot = std::ranges::find(slots, camera, &CameraSlot::name);
      if (slot == slots.end())
        return wrong("--camera-map " + camera + "=" + feature,
                     "the policy has no such camera; it has " + slots_text(slots));
      slot->feature = feature == kNone ? "" : feature;
    }
    const bool has_any =
        std::ranges::any_of(slots, [](const CameraSlot& slot) { return !slot.feature.empty(); });
    const auto cameras = set.info.cameras();
    if (has_any || cameras.empty()) return slots;
    return wrong(data_.flag + " " + set.folder.string(),
                 "none of its cameras is named as one of the policy's: --camera-map " +
                     slots.front().name + "=" + cameras.front() + " would be one (" +
                     slots_text(slots) + ")");
  }

  Result<RobotStatistics> find_statistics(const LeRobotSet& set,
                                          const std::vector<bool>& is_delta) const {
    RobotStatistics wanted{.state_name = options_.state,
                           .action_name = options_.action,
                           .rule = {.is_delta = is_delta, .horizon = shape_.horizon}};
    if (options_.normalisation == Normalisation::none) return wanted;
    return statistics_for(set, options_.statistics, wanted);
  }

  void tell(const RobotFrames& frames, const RobotStatistics& statistics) {
    settings_.push_back({"data set", frames.set().text(), data_.flag});
    settings_.push_back({"cameras", slots_text(frames.options().cameras), "computed"});
    if (!statistics.origin.empty())
      settings_.push_back({"normalised by", statistics.origin, "computed"});
    if (!frames.videos_text().empty())
      settings_.push_back({"videos by index", frames.videos_text(), "computed"});
    if (frames.cut_prompts() > 0)
      settings_.push_back({"prompts cut",
                           std::to_string(frames.cut_prompts()) + " of " +
                               std::to_string(frames.set().meta.tasks.size()) + " tasks, to " +
                               std::to_string(frames.options().prompt.length) + " tokens",
                           "--cut-prompts"});
  }

  const DataPaths& data_;
  const RobotPolicyShape& shape_;
  const RobotDataOptions& options_;
  std::vector<Setting> settings_;
  std::map<std::string, std::string> files_;
};

}  // namespace

std::span<const Flag> robot_data_flags() { return kFlags; }

std::string policy_json(const PolicyFacts& facts) {
  const auto* const found = std::ranges::find(kNormalisations, facts.normalisation,
                                              &std::pair<std::string_view, Normalisation>::second);
  auto json = nlohmann::ordered_json::parse(statistics_json(facts.statistics));
  json[kNormalisationField] = found->first;
  json[kCutField] = facts.may_cut_prompts;
  return json.dump(1) + "\n";
}

Result<PolicyFacts> policy_facts_from(std::string_view text) try {
  PolicyFacts facts;
  auto statistics = statistics_from(text);
  if (!statistics) return wrong(kPolicyFile, statistics.error().message);
  facts.statistics = std::move(*statistics);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto name = JsonPlace(json, "").at(kNormalisationField);
  const auto normalisation = normalisation_named(name.text());
  if (!normalisation) throw name.wrong("must be mean-std, quantiles or none");
  facts.normalisation = *normalisation;
  const auto may_cut = JsonPlace(json, "").at(kCutField);
  if (!may_cut.value().is_boolean()) throw may_cut.wrong("must be true or false");
  facts.may_cut_prompts = may_cut.value().get<bool>();
  return facts;
} catch (const std::exception& failure) {
  return wrong(kPolicyFile, failure.what());
}

RobotDataOptions read_robot_data_flags(FlagReader& reader, Normalisation otherwise) {
  RobotDataOptions options;
  const auto text = [&reader](const char* flag, std::string& into) {
    if (reader.is_given(flag)) into = reader.text(flag);
  };
  text("--tokenizer", options.tokenizer);
  text("--state-feature", options.state);
  text("--action-feature", options.action);
  text("--statistics", options.statistics);
  text("--delta-actions", options.delta_actions);
  if (reader.is_given("--camera-map"))
    options.camera_map = reader.choice("--camera-map", "",
                                       "camera=feature, with commas between them", camera_map_from);
  options.normalisation = reader.choice(
      "--normalisation", otherwise == Normalisation::quantiles ? "quantiles" : "mean-std",
      "mean-std, quantiles or none", normalisation_named);
  options.held_out_share = reader.real("--held-out", {.value = "0"}, {0, 0.999}, kShareRule);
  options.is_augmented = !reader.is_set("--no-augmentation");
  options.may_cut_prompts = reader.is_set("--cut-prompts");
  const auto mask = delta_mask_from(options.delta_actions);
  if (!mask) reader.fail(mask.error());
  return options;
}

OpenedRobotData open_robot_data(const DataPaths& data,
                                const std::vector<std::string>& training_paths,
                                const RobotPolicyShape& shape, const RobotDataOptions& options) {
  const bool is_of_training =
      data.paths.size() == 1 &&
      std::ranges::find(training_paths, data.paths.front()) != training_paths.end();
  RobotDataOpener opener(data, shape, options);
  auto source = opener.open(data.is_eval && is_of_training && options.held_out_share > 0);
  if (!source) return {.source = {}, .failure = data_failure(source.error())};
  return {.source = std::move(*source),
          .failure = {},
          .settings = opener.take_settings(),
          .files = opener.take_files()};
}

}  // namespace tj::trainer
