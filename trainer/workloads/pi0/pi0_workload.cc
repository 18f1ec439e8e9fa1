#include "trainer/workloads/pi0/pi0_workload.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "trainer/workload/made_up_samples.h"
#include "trainer/workloads/pi0/act_command.h"
#include "trainer/workloads/pi0/pi0.h"
#include "trainer/workloads/pi0/pi0_batch.h"
#include "trainer/workloads/pi0/pi0_json.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kExtentMax = 1'000'000;
constexpr std::int64_t kImageSideMax = 4096;
constexpr std::size_t kCamerasMax = 16;

constexpr Flag kFlags[] = {
    {.name = "--cameras",
     .help = "names of the images that the policy sees, with commas between them (preset)"},
    {.name = "--image-size", .help = "pixels, height and width of an image (224; of nano 56)"},
    {.name = "--prompt-tokens", .help = "tokens of a prompt, padded (48; of pi05 200)"},
    {.name = "--horizon", .help = "actions of one chunk (50; of nano 8)"},
    {.name = "--action-dim", .help = "values of a state and of an action, padded (32; of nano 8)"},
    {.name = "--vocabulary", .help = "tokens that the prompt may have (257152; of nano 1024)"},
};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

/// Absent: one of the names is empty, or there are none or too many.
std::optional<std::vector<std::string>> camera_names(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream parts(text);
  for (std::string name; std::getline(parts, name, ',');) names.push_back(name);
  const auto is_empty = [](const std::string& name) { return name.empty(); };
  const bool is_wrong = names.empty() || names.size() > kCamerasMax || text.back() == ',' ||
                        std::ranges::any_of(names, is_empty);
  return is_wrong ? std::nullopt : std::optional(names);
}

}  // namespace

Pi0Workload::Pi0Workload(const Preset& preset, Pi0DataOpener opener)
    : preset_name_(preset.name), opener_(std::move(opener)), config_(pi0_model(preset)) {}

Result<void> Pi0Workload::read_init(const std::string& path) {
  const auto sizes = read_pi0_sizes(path);
  if (!sizes) return sizes.error();
  init_ = *sizes;
  init_path_ = path;
  return {};
}

void Pi0Workload::configure(FlagReader& reader) {
  if (init_) {
    config_.vocabulary = init_->vocabulary;
    config_.action_width = init_->action_width;
  }
  const auto otherwise = [&](std::int64_t value) {
    return Otherwise{.value = std::to_string(value), .origin = "preset " + preset_name_};
  };
  const Range<std::int64_t> extent{1, kExtentMax};
  config_.cameras = reader.choice("--cameras", joined(config_.cameras),
                                  "one to sixteen names with commas between them", camera_names);
  auto& vision = config_.vision;
  vision.image_side = reader.whole("--image-size", otherwise(vision.image_side),
                                   {vision.patch_side, kImageSideMax});
  if (vision.image_side % vision.patch_side != 0)
    reader.fail(
        "--image-size", std::to_string(vision.image_side),
        "it must be a multiple of " + std::to_string(vision.patch_side) + ", the side of a patch");
  config_.prompt_tokens = reader.whole("--prompt-tokens", otherwise(config_.prompt_tokens), extent);
  config_.horizon = reader.whole("--horizon", otherwise(config_.horizon), extent);
  config_.action_width = reader.whole("--action-dim", otherwise(config_.action_width), extent);
  config_.state_width = config_.actions_counted = config_.action_width;
  config_.vocabulary = reader.whole("--vocabulary", otherwise(config_.vocabulary), extent);
  if (init_) check_against_init(reader);
  data_options_.normalisation =
      config_.is_pi05() ? Normalisation::quantiles : Normalisation::mean_std;
  if (!opener_) data_options_ = read_robot_data_flags(reader, data_options_.normalisation);
}

/// Of what the weights say; the shapes of all tensors are compared when they are read.
void Pi0Workload::check_against_init(FlagReader& reader) const {
  if (init_->kind != config_.kind)
    reader.fail("--model", preset_name_,
                init_path_ + " is a " + (init_->kind == Pi0Config::Kind::pi05 ? "pi05" : "pi0"));
  const std::pair<const char*, std::pair<std::int64_t, std::int64_t>> values[] = {
      {"--vocabulary", {config_.vocabulary, init_->vocabulary}},
      {"--action-dim", {config_.action_width, init_->action_width}}};
  for (const auto& [flag, value] : values)
    if (value.first != value.second)
      reader.fail(flag, std::to_string(value.first),
                  init_path_ + " has " + std::to_string(value.second));
  if (config_.vision.tokens_of_image() != init_->tokens_of_image)
    reader.fail("--image-size", std::to_string(config_.vision.image_side),
                init_path_ + " has " + std::to_string(init_->tokens_of_image) +
                    " tokens of an image, this would be " +
                    std::to_string(config_.vision.tokens_of_image()));
}

OpenedData Pi0Workload::open_data(const DataPaths& data) {
  if (opener_) return opener_(data, config_);
  if (!data.is_eval) training_paths_ = data.paths;
  auto opened = open_robot_data(data, training_paths_, robot_policy_shape(config_), data_options_);
  if (opened.failure) return {.source = {}, .failure = std::move(opened.failure)};
  if (auto failure = settle(opened, data)) return {.source = {}, .failure = std::move(failure)};
  return {.source = std::move(opened.source)};
}

/// What is trained on completes the model.
std::optional<Failure> Pi0Workload::settle(OpenedRobotData& opened, const DataPaths& data) {
  const auto width = opened.source->frames().set().action.width;
  if (data.is_eval) {
    if (width == config_.actions_counted) return std::nullopt;
    return bad_data(Error{.code = Code::invalid,
                          .message = "its action has " + std::to_string(width) +
                                     " numbers, and that of --data " +
                                     std::to_string(config_.actions_counted),
                          .subject = data.flag + " " + data.paths.front()});
  }
  config_.actions_counted = width;
  settings_ = std::move(opened.settings);
  files_ = std::move(opened.files);
  return std::nullopt;
}

HeldOut Pi0Workload::held_out(const std::vector<std::string>& data) const {
  if (data_options_.held_out_share == 0) return {};
  return {.paths = data};
}

OpenedData Pi0Workload::make_up_data() {
  return {.source =
              std::make_unique<MadeUpSamples>(pi0_made_up(config_), config_.values_of_chunk())};
}

std::unique_ptr<Model> Pi0Workload::make_model(const ModelOptions& options,
                                               const ModelKeeper& keeper) const {
  return std::make_unique<Pi0>(config_, options, keeper);
}

SampleWords Pi0Workload::words() const { return {.counted = "values of actions"}; }

std::size_t Pi0Workload::metric_sums() const { return kPi0MetricSums; }

std::vector<Metric> Pi0Workload::metrics() const {
  return {{.name = "action_error",
           .label = "action error",
           .unit = "",
           .is_of_evaluations = true,
           .finish = [](std::span<const double> sums, double) { return sums[0] / sums[1]; }}};
}

SampleCost Pi0Workload::cost() const {
  constexpr double kForwardAndBackward = 3;
  return {.flops = kForwardAndBackward * pi0_flops_of_sample(config_),
          .formula = "3 x the matrix products of a forward pass",
          .bytes = pi0_bytes_of_sample(config_)};
}

std::string Pi0Workload::config_json() const {
  return pi0_config_json(config_, data_options_.normalisation);
}

Result<TensorReader> Pi0Workload::open_initial_weights(const std::string& path) const {
  return open_pi0_weights(path, tensors());
}

RobotPolicyShape robot_policy_shape(const Pi0Config& config) {
  return {.cameras = config.cameras,
          .picture = {.height = config.vision.image_side, .width = config.vision.image_side},
          .prompt_tokens = config.prompt_tokens,
          .vocabulary = config.vocabulary,
          .horizon = config.horizon,
          .state_width = config.state_width,
          .action_width = config.action_width,
          .prompt = config.is_pi05() ? PromptKind::pi05 : PromptKind::pi0};
}

std::span<const Flag> pi0_flags() { return kFlags; }

namespace {

std::span<const Flag> all_flags() {
  static const auto kAll = [] {
    std::vector<Flag> flags(std::begin(kFlags), std::end(kFlags));
    std::ranges::copy(robot_data_flags(), std::back_inserter(flags));
    return flags;
  }();
  return kAll;
}

}  // namespace

WorkloadEntry pi0_entry() {
  return {.name = "pi0",
          .title = "a robot policy pi0 or pi05",
          .data_help = "folder of a LeRobot data set",
          .presets = pi0_presets(),
          .flags = all_flags(),
          .commands = pi0_commands(),
          .make = [](const Preset& preset) -> std::unique_ptr<Workload> {
            return std::make_unique<Pi0Workload>(preset);
          }};
}

}  // namespace tj::trainer
