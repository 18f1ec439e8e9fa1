#include "trainer/workloads/taehv/taehv_workload.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "trainer/workloads/taehv/taehv_weights.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kFramesMax = 4096;
constexpr std::int64_t kSideMax = 8192;
constexpr std::int64_t kStrideMax = 1000;
constexpr double kWeightMax = 1e6;
constexpr std::size_t kNamedMax = 3;  // of the videos that can't be used, in one message
constexpr const char* kWeightRule = "it must be a number from 0 to 1000000";

constexpr Flag kFlags[] = {
    {.name = "--clip-frames", .help = "frames of one clip (12; of taehv-nano 8)"},
    {.name = "--clip-size", .help = "pixels, height and width of one clip (64; of taehv-nano 32)"},
    {.name = "--frame-stride", .help = "1 to so many frames of the video for one of the clip (5)"},
    {.name = "--mse-weight", .help = "of the squared error in the loss (1)"},
    {.name = "--l1-weight", .help = "of the absolute error in the loss (0.1)"},
    {.name = "--bad-data-max",
     .help = "share of the videos that may be damaged or too small: 1% or 0.01 (1%)"},
};

/// "1%" or "0.01".
std::optional<double> share_from(std::string text) {
  const bool is_percent = !text.empty() && text.back() == '%';
  if (is_percent) text.pop_back();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end) / (is_percent ? 100 : 1);
  const bool is_whole = !text.empty() && *end == '\0' && std::isdigit(text.front()) != 0;
  if (!is_whole || !(value >= 0 && value <= 1)) return std::nullopt;
  return value;
}

std::string left_out_text(const std::vector<Error>& left_out) {
  std::string text;
  for (std::size_t i = 0; i < std::min(left_out.size(), kNamedMax); ++i)
    text += (i == 0 ? "" : "; ") + describe(left_out[i]);
  if (left_out.size() > kNamedMax)
    text += "; and " + std::to_string(left_out.size() - kNamedMax) + " more";
  return text;
}

}  // namespace

TaehvWorkload::TaehvWorkload(const Preset& preset, std::filesystem::path plugin)
    : preset_name_(preset.name), config_(taehv_model(preset)), opener_(std::move(plugin)) {}

Result<void> TaehvWorkload::read_init(const std::string& path) {
  const auto opened = open_initial_weights(path);
  if (!opened) return opened.error();
  return {};
}

Result<TensorReader> TaehvWorkload::open_initial_weights(const std::string& path) const {
  return open_taehv_weights(path, tensors());
}

void TaehvWorkload::configure(FlagReader& reader) {
  const bool is_nano = preset_name_ == "taehv-nano";
  const std::string origin = "preset " + preset_name_;
  const auto multiple = [&](const char* flag, std::int64_t value, std::int64_t of) {
    if (value % of != 0)
      reader.fail(flag, std::to_string(value),
                  "it must be a multiple of " + std::to_string(of) + ", which " + preset_name_ +
                      " makes one of");
  };
  const auto frames = is_nano ? 8 : std::max<std::int64_t>(12, 2 * config_.frames_of_latent());
  clip_.frames = reader.whole("--clip-frames", {.value = std::to_string(frames), .origin = origin},
                              {1, kFramesMax});
  multiple("--clip-frames", clip_.frames, config_.frames_of_latent());
  clip_.side = reader.whole("--clip-size", {.value = is_nano ? "32" : "64", .origin = origin},
                            {1, kSideMax});
  multiple("--clip-size", clip_.side, config_.pixels_of_latent());
  clip_.stride_max = reader.whole("--frame-stride", {.value = "5"}, {1, kStrideMax});
  loss_.squared = reader.real("--mse-weight", {.value = "1"}, {0, kWeightMax}, kWeightRule);
  loss_.absolute = reader.real("--l1-weight", {.value = "0.1"}, {0, kWeightMax}, kWeightRule);
  if (loss_.squared + loss_.absolute == 0)
    reader.fail("--l1-weight", "0", "one of it and --mse-weight must be above 0");
  bad_share_max_ = reader.choice("--bad-data-max", "1%", "a share such as 1% or 0.01", share_from);
  if (reader.is_given("--recompute"))
    reader.fail("--recompute", "true",
                "taehv keeps all that it computes; a smaller --micro-batch "
                "takes less memory");
}

/// Why it can't be cut into clips.
std::optional<Error> TaehvWorkload::unfit(const VideoShape& video, const std::string& name) const {
  const auto wrong = [&](std::string message) {
    return Error{.code = Code::invalid, .message = std::move(message), .subject = name};
  };
  if (video.frames < clip_.frames)
    return wrong("has " + std::to_string(video.frames) + " frames, --clip-frames is " +
                 std::to_string(clip_.frames));
  if (std::min(video.height, video.width) < clip_.side)
    return wrong("is " + std::to_string(video.width) + " x " + std::to_string(video.height) +
                 " pixels, --clip-size is " + std::to_string(clip_.side));
  return std::nullopt;
}

TaehvWorkload::Usable TaehvWorkload::open_all(const std::vector<VideoFiles>& found) const {
  Usable usable;
  for (const auto& files : found) {
    auto video = opener_.open(files);
    if (!video) {
      usable.left_out.push_back(video.error());
    } else if (auto why = unfit((*video)->shape(), files.name())) {
      usable.left_out.push_back(std::move(*why));
    } else {
      usable.videos.push_back(std::move(*video));
    }
  }
  return usable;
}

OpenedData TaehvWorkload::open_data(const DataPaths& data) {
  const auto failed = [](const Error& error) {
    return OpenedData{.source = {}, .failure = bad_data(error)};
  };
  const auto found = find_videos(data.paths, data.flag);
  if (!found) return failed(found.error());
  if (const auto ready = opener_.prepare_for(*found); !ready) return failed(ready.error());
  auto usable = open_all(*found);
  const BadVideos bad{
      .count = usable.left_out.size(), .of = found->size(), .share_max = bad_share_max_};
  if (usable.videos.empty() || bad.are_too_many())
    return failed({.code = Code::invalid,
                   .message = bad.text() + ": " + left_out_text(usable.left_out),
                   .subject = data.flag + " " + data.paths.front()});
  auto source = std::make_unique<ClipSamples>(
      std::move(usable.videos),
      ClipSamples::Options{
          .shape = clip_, .is_drawn = !data.is_eval, .weight = values_of_clip(), .bad = bad});
  const std::string row = data.is_eval ? "eval videos" : "videos";
  settings_.push_back({row, source->description(), "computed"});
  if (bad.count > 0)
    settings_.push_back({row + " left out", bad.count_text(), left_out_text(usable.left_out)});
  return {.source = std::move(source), .failure = {}};
}

/// Those that are reconstructed.
std::int64_t TaehvWorkload::values_of_clip() const {
  return (clip_.frames - config_.frames_to_trim()) * kImageChannels * clip_.side * clip_.side;
}

std::unique_ptr<Model> TaehvWorkload::make_model(const ModelOptions& options,
                                                 const ModelKeeper& keeper) const {
  return std::make_unique<Taehv>(config_, loss_, options, keeper);
}

SampleWords TaehvWorkload::words() const {
  return {.unit = {.name = "frames", .short_name = "frames"},
          .units = clip_.frames,
          .units_origin = "clip-frames",
          .counted = "values of pixels"};
}

SampleCost TaehvWorkload::cost() const {
  constexpr double kForwardAndBackward = 3;
  return {.flops = kForwardAndBackward * static_cast<double>(clip_.frames) *
                   taehv_flops_of_frame(config_, clip_.side, clip_.side),
          .formula = "3 x the convolutions of one frame",
          .bytes = clip_.frames * kImageChannels * clip_.side * clip_.side};
}

/// 10 log10(1 / mean squared error), of values in [0, 1]: the logarithm of a mean over all ranks.
std::vector<Metric> TaehvWorkload::metrics() const {
  return {{.name = "psnr",
           .label = "PSNR",
           .unit = "dB",
           .decimals = 2,
           .finish = [](auto sums, double weight) { return 10 * std::log10(weight / sums[0]); }},
          {.name = "ssim",
           .label = "SSIM",
           .unit = "",
           .is_of_evaluations = true,
           .finish = [](auto sums, double weight) { return sums[1] / weight; }}};
}

WorkloadEntry taehv_entry() {
  return {.name = "taehv",
          .title = "a tiny autoencoder for video",
          .data_help = "folder of videos or of pictures, or a video; may be given several times",
          .presets = taehv_presets(),
          .flags = kFlags,
          .make = [](const Preset& preset) -> std::unique_ptr<Workload> {
            return std::make_unique<TaehvWorkload>(preset);
          }};
}

}  // namespace tj::trainer
