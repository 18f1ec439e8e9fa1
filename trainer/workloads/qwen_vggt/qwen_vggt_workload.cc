#include "trainer/workloads/qwen_vggt/qwen_vggt_workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "trainer/values/byte_size.h"
#include "trainer/values/failure.h"
#include "trainer/workloads/qwen_vggt/generate_command.h"
#include "trainer/workloads/qwen_vggt/qwen_vggt.h"
#include "trainer/workloads/qwen_vggt/qwen_weights.h"
#include "trainer/workloads/qwen_vggt/trained_qwen.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr const char* kVggt = "--vggt";
constexpr const char* kTokenizer = "--tokenizer";
constexpr double kWeightMax = 1000;
constexpr double kRateMax = std::numeric_limits<double>::max();
// JanusVLN's scripts/train.sh: 1e-6 and 1e-5 beside 2e-5.
constexpr double kVisionShare = 0.05;
constexpr double kProjectorShare = 0.5;

constexpr Flag kFlags[] = {
    {.name = kVggt,
     .help = "weights of a VGGT: a folder, a .safetensors, .pt or .pth file; off: a Qwen2.5-VL "
             "alone; random: for tests (of qwen-vggt-nano random)"},
    {.name = "--vggt-sight",
     .help = "which frames a frame sees: earlier, as if they came one by one, or all (earlier)"},
    {.name = "--vggt-weight", .help = "with which VGGT's tokens are added to the pictures' (0.2)"},
    {.name = "--vggt-cache",
     .help = "memory of each rank's device for frames that come again (256MiB)"},
    {.name = "--vggt-shard",
     .help = "a rank keeps a part of each of VGGT's layers, and gathers a layer before it computes",
     .is_switch = true},
    {.name = "--vision-lr",
     .help = "learning rate of the vision tower (a twentieth of --lr; of qwen-vggt-nano --lr)"},
    {.name = "--projector-lr",
     .help = "the same of what joins it and VGGT to the language (half of --lr; of qwen-vggt-nano "
             "--lr)"},
};

// Of the start scripts with which JanusVLN's kind of training is run.
constexpr EnvironmentFlag kEnvironment[] = {
    {.variable = "MODEL_PATH", .flag = "--init-from"},
    {.variable = "VGGT_MODEL_PATH", .flag = kVggt},
    {.variable = "DATA_ROOT", .flag = "--data-root"},
    {.variable = "DATA_ROOT", .flag = "--data"},
    {.variable = "MAX_HISTORY_IMAGES", .flag = "--max-history-images"},
    {.variable = "LEARNING_RATE", .flag = "--lr"},
    {.variable = "GRAD_ACCUM_STEPS", .flag = "--accumulation"},
    {.variable = "PER_DEVICE_BATCH", .flag = "--batch-size", .is_of_pass = true},
};

std::optional<FrameSight> sight_from(const std::string& text) {
  if (text == "earlier") return FrameSight::earlier;
  if (text == "all") return FrameSight::all;
  return std::nullopt;
}

/// `path`, or the folder in which this file lies.
fs::path folder_of(const fs::path& path) {
  std::error_code unreadable;
  return fs::is_directory(path, unreadable) ? path : path.parent_path();
}

std::int64_t bytes_of(const ConversationSize& size, const ConversationShape& shape) {
  constexpr std::int64_t kBytesOfToken = 4 + 3 * 4 + 4;
  const auto frames =
      shape.has_geometry ? size.pictures * kColours * size.sides.height * size.sides.width : 0;
  return size.tokens * kBytesOfToken + size.patches * shape.patches.values_of_patch() + frames;
}

}  // namespace

QwenVggtWorkload::QwenVggtWorkload(const Preset& preset, ConversationOpener opener)
    : preset_(preset),
      is_nano_(is_nano(preset)),
      opener_(std::move(opener)),
      config_(qwen_vggt_model(preset)) {}

Result<void> QwenVggtWorkload::read_init(const std::string& path) {
  auto config = read_qwen_config(folder_of(path));
  if (!config) return config.error();
  config_.qwen = std::move(*config);
  init_path_ = path;
  return {};
}

void QwenVggtWorkload::configure(FlagReader& reader) {
  if (!init_path_.empty())
    reader.note("parameters of the Qwen2.5-VL", grouped(parameter_count(config_.qwen)),
                "config.json of " + init_path_);
  configure_vggt(reader);
  configure_rates(reader);
  options_ = read_conversation_flags(reader);
  if (init_path_.empty() || reader.is_given(kTokenizer)) return;
  options_.tokenizer = folder_of(init_path_).string();
  reader.note(kTokenizer, options_.tokenizer, "beside --init-from");
}

void QwenVggtWorkload::configure_vggt(FlagReader& reader) {
  is_vggt_named_ = is_nano_ || reader.is_given(kVggt);
  const std::string preset_origin = "preset " + std::string(preset_.name);
  if (reader.is_given(kVggt)) {
    auto coupling = with_vggt(reader.given(kVggt), *config_.coupling);
    if (!coupling) return reader.fail(of_flag(kVggt, reader.given(kVggt), coupling.error()));
    config_.coupling = std::move(*coupling);
    reader.note(kVggt, reader.given(kVggt), "flag");
  } else {
    reader.note(kVggt, is_nano_ ? "random" : "VGGT-1B", preset_origin);
  }
  if (!config_.coupling) {
    for (const char* const flag : {"--vggt-sight", "--vggt-weight", "--vggt-cache", "--vggt-shard"})
      if (reader.is_given(flag))
        reader.fail(flag, reader.given(flag), "it needs a VGGT, and --vggt is off");
    return;
  }
  auto& coupling = *config_.coupling;
  coupling.sight = reader.choice("--vggt-sight", "earlier", "earlier or all", sight_from);
  coupling.weight = reader.real("--vggt-weight", {.value = "0.2"}, {-kWeightMax, kWeightMax},
                                "it must be a number from -1000 to 1000");
  vggt_room_.cache_bytes_max =
      reader.choice("--vggt-cache", "256MiB", kByteSizeRule, byte_size_from);
  vggt_room_.is_shared_out = reader.is_set("--vggt-shard");
  if (coupling.vggt.patch_side != config_.qwen.vision.patch_side)
    reader.fail(
        {.code = Code::invalid,
         .message = "its patches have sides of " + std::to_string(coupling.vggt.patch_side) +
                    " pixels, and those of the Qwen2.5-VL " +
                    std::to_string(config_.qwen.vision.patch_side) + "; the two must be equal",
         .subject = std::string(kVggt) + " " + reader.given(kVggt)});
}

/// What --lr is without a flag only the engine knows: groups have shares of it.
void QwenVggtWorkload::configure_rates(FlagReader& reader) {
  lr_ = preset_.lr;
  if (reader.is_given("--lr")) {
    const auto& text = reader.given("--lr");
    std::from_chars(text.data(), text.data() + text.size(), lr_);
  }
  if (!(lr_ > 0)) lr_ = preset_.lr;  // the engine refuses it
  vision_lr_ = rate(reader, "--vision-lr", is_nano_ ? 1 : kVisionShare);
  projector_lr_ = rate(reader, "--projector-lr", is_nano_ ? 1 : kProjectorShare);
}

double QwenVggtWorkload::rate(FlagReader& reader, const char* flag, double share) const {
  return reader.real(
      flag,
      {.value = number_text(lr_ * share), .origin = "computed: " + number_text(share) + " x lr"},
      {0, kRateMax}, "it must be a number from 0");
}

ConversationShape conversation_shape_of(const QwenVggtConfig& config) {
  const auto& vision = config.qwen.vision;
  // The bounds of Qwen2.5-VL's own preprocessor_config.json; flags lower the upper one.
  return {.patches = {.patch_side = vision.patch_side,
                      .merge_side = vision.merge_side,
                      .frames_of_patch = vision.frames_of_patch,
                      .pixels_min = 3136,
                      .pixels_max = 12'845'056},
          .ids = chat_ids(config.qwen),
          .mrope = config.qwen.mrope(),
          .vocabulary = config.qwen.text.vocabulary,
          .has_geometry = config.coupling.has_value()};
}

ConversationShape QwenVggtWorkload::conversation_shape() const {
  return conversation_shape_of(config_);
}

OpenedData QwenVggtWorkload::open_data(const DataPaths& data) {
  if (!is_vggt_named_)
    return {.source = {},
            .failure = bad_config(
                Error{.code = Code::invalid,
                      .message = "is missing: the weights of a VGGT, or off for a Qwen2.5-VL alone",
                      .subject = kVggt})};
  if (!data.is_eval) training_paths_ = data.paths;
  auto opened = opener_(data, training_paths_, conversation_shape(), options_);
  if (opened.failure) return {.source = {}, .failure = std::move(opened.failure)};
  std::ranges::move(opened.settings, std::back_inserter(settings_));
  if (data.is_eval) return {.source = std::move(opened.source)};
  files_ = std::move(opened.files);
  const auto pictures = largest_conversation(conversation_shape(), options_).pictures;
  vggt_room_.frames_max = opened.source->sample_count() * pictures;
  return {.source = std::move(opened.source)};
}

OpenedData QwenVggtWorkload::make_up_data() {
  return {.source = make_up_conversations(conversation_shape(), options_)};
}

HeldOut QwenVggtWorkload::held_out(const std::vector<std::string>& data) const {
  if (options_.held_out_share == 0) return {};
  return {.paths = data};
}

std::vector<Setting> QwenVggtWorkload::settings() const {
  auto settings = settings_;
  if (!config_.coupling) return settings;
  std::int64_t elements = 0;
  for (const auto& spec : vggt_tensors(config_.coupling->vggt).specs)
    elements += element_count(spec);
  const std::string where =
      vggt_room_.is_shared_out ? "shared out among the ranks" : "whole on each rank";
  settings.push_back({"parameters of VGGT", grouped(elements),
                      "computed: frozen, " + where + " in the precision of the passes"});
  return settings;
}

std::vector<ParameterGroup> QwenVggtWorkload::groups() const {
  std::vector<ParameterGroup> groups{
      {.pattern = "visual.*", .lr_scale = vision_lr_ / lr_, .weight_decay = {}},
      {.pattern = "visual.merger.*", .lr_scale = projector_lr_ / lr_, .weight_decay = {}}};
  if (config_.coupling)
    groups.push_back({.pattern = "merger.*", .lr_scale = projector_lr_ / lr_, .weight_decay = {}});
  return groups;
}

std::unique_ptr<Model> QwenVggtWorkload::make_model(const ModelOptions& options,
                                                    const ModelKeeper& keeper) const {
  std::unique_ptr<SceneFeatures> features;
  if (config_.coupling) {
    auto opened = open_scene_features(*config_.coupling, options,
                                      {.cache_bytes_max = vggt_room_.cache_bytes_max,
                                       .ranks = vggt_room_.is_shared_out ? keeper.ranks : nullptr});
    if (!opened) throw BadDataError(of_flag(kVggt, config_.coupling->file, opened.error()));
    features = std::move(*opened);
  }
  return std::make_unique<QwenVggt>(config_, options, keeper, std::move(features));
}

PassMemory QwenVggtWorkload::pass_memory(const PassRule& rule) const {
  return qwen_vggt_memory(config_, largest_conversation(conversation_shape(), options_), rule,
                          vggt_room_);
}

std::vector<PassRemedy> QwenVggtWorkload::pass_remedies(const PassRule& rule) const {
  std::vector<PassRemedy> remedies;
  const auto size = largest_conversation(conversation_shape(), options_);
  const auto history = options_.history_pictures_max / 2;
  const auto fewer = size.pictures - (history + 1);
  if (fewer > 0) {
    // Else text would fill the place of the pictures.
    auto options = options_;
    options.history_pictures_max = history;
    options.tokens_max -= fewer * (size.tokens - size.learned) / size.pictures;
    remedies.push_back(
        {.flag = "--max-history-images " + std::to_string(history) + " and --seq-len " +
                 std::to_string(options.tokens_max),
         .note = "as much text",
         .memory = qwen_vggt_memory(config_, largest_conversation(conversation_shape(), options),
                                    rule, vggt_room_)});
  }
  if (config_.coupling && rule.ranks > 1 && !vggt_room_.is_shared_out) {
    auto shared_out = vggt_room_;
    shared_out.is_shared_out = true;
    remedies.push_back(
        {.flag = "--vggt-shard", .memory = qwen_vggt_memory(config_, size, rule, shared_out)});
  }
  return remedies;
}

SampleWords QwenVggtWorkload::words() const { return {.counted = "learned tokens"}; }

SampleCost QwenVggtWorkload::cost() const {
  constexpr double kForwardAndBackward = 3;
  const auto size = largest_conversation(conversation_shape(), options_);
  return {.flops = kForwardAndBackward * qwen_vggt_flops(config_, size),
          .formula =
              "3 x the matrix products of a forward pass over the largest conversation, and "
              "VGGT's once",
          .bytes = bytes_of(size, conversation_shape())};
}

std::size_t QwenVggtWorkload::metric_sums() const { return kQwenVggtSums; }

std::vector<Metric> QwenVggtWorkload::metrics() const {
  return {{.name = "token_accuracy",
           .label = "right tokens",
           .unit = "",
           .finish = [](auto sums, double weight) { return sums[kRightTokens] / weight; }},
          {.name = "right_answers",
           .label = "right answers",
           .unit = "",
           .is_of_evaluations = true,
           .finish = [](auto sums, double) {
             return sums[kRightAnswers] / std::max(1.0, sums[kAnswers]);
           }}};
}

std::map<std::string, std::string> QwenVggtWorkload::files() const {
  auto files = files_;
  auto rule = conversation_shape().patches;
  rule.pixels_max = std::max(rule.pixels_min, std::min(rule.pixels_max, options_.pixels_max));
  files[kPreprocessorFile] = preprocessor_json(rule);
  files[kVideoPreprocessorFile] = video_preprocessor_json(rule, options_.seen);
  return files;
}

Result<TensorReader> QwenVggtWorkload::open_initial_weights(const std::string& path) const {
  return open_qwen_vggt_weights(path, config_);
}

std::span<const Flag> qwen_vggt_flags() {
  static const auto kAll = [] {
    std::vector<Flag> flags(std::begin(kFlags), std::end(kFlags));
    std::ranges::copy(conversation_flags(), std::back_inserter(flags));
    return flags;
  }();
  return kAll;
}

WorkloadEntry qwen_vggt_entry() {
  return {
      .name = "qwen_vggt",
      .title = "a Qwen2.5-VL, with or without a frozen VGGT, on conversations with pictures",
      .data_help =
          "file of conversations (.json, .jsonl), or a folder of them; may be given several times",
      .presets = qwen_vggt_presets(),
      .flags = qwen_vggt_flags(),
      .commands = qwen_vggt_commands(),
      .environment = kEnvironment,
      .make = [](const Preset& preset) -> std::unique_ptr<Workload> {
        return std::make_unique<QwenVggtWorkload>(preset);
      }};
}

}  // namespace tj::trainer
