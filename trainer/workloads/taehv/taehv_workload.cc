#include "trainer/workloads/taehv/taehv_workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "trainer/values/byte_size.h"
#include "trainer/values/share.h"
#include "trainer/workload/made_up_samples.h"
#include "trainer/workloads/taehv/codec_commands.h"
#include "trainer/workloads/taehv/taehv_weights.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kFramesMax = 4096;
constexpr std::int64_t kSideMax = 8192;
constexpr std::size_t kNamedMax = 3;  // of the videos that can't be used, in one message

constexpr Flag kFlags[] = {
    {.name = "--clip-frames", .help = "frames of one clip (12; of taehv-nano 8)"},
    {.name = "--clip-size", .help = "pixels, height and width of one clip (64; of taehv-nano 32)"},
    {.name = "--frame-stride", .help = "1 to so many frames of the video for one of the clip (5)"},
    {.name = "--mse-weight", .help = "of the squared error in the loss (1)"},
    {.name = "--l1-weight", .help = "of the absolute error in the loss (0.1)"},
    {.name = "--teacher-latents",
     .help = "folder of a teacher's latents to learn from, VIDEO.safetensors of each video"},
    {.name = "--latent-weight", .help = "of the squared difference from them in the loss (1)"},
    {.name = "--adversarial-weight",
     .help = "of the difference from frames that a discriminator corrects, in the loss (0: none)"},
    {.name = "--replay-clips",
     .help = "groups of three frames made earlier that it learns from (16384; of taehv-nano 512)"},
    {.name = "--bad-data-max",
     .help = "share of the videos that may be damaged or too small: 1% or 0.01 (1%)"},
    {.name = "--frame-cache",
     .help = "memory of each process for frames that were decoded, for later clips (512MiB)"},
    {.name = "--video-decoder",
     .help = "cpu; cuda or vaapi: the GPU's, whose frames may differ in bits; auto: one of these "
             "where it can be had (cpu)"},
    {.name = "--video-index",
     .help = "file of trainer prepare video, for all folders (videos.index.jsonl in each)"},
};

std::optional<std::string> video_decoder_named(const std::string& text) {
  constexpr std::array<std::string_view, 4> kDecoders{"cpu", "cuda", "vaapi", "auto"};
  return std::ranges::find(kDecoders, text) == kDecoders.end() ? std::nullopt : std::optional(text);
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
    : preset_name_(preset.name),
      preset_lr_(preset.lr),
      config_(taehv_model(preset)),
      opener_(std::move(plugin)) {}

Result<void> TaehvWorkload::read_init(const std::string& path) {
  const auto opened = open_initial_weights(path);
  if (!opened) return opened.error();
  return {};
}

Result<TensorReader> TaehvWorkload::open_initial_weights(const std::string& path) const {
  return open_taehv_weights(path, taehv_layers(config_).tensors);
}

void TaehvWorkload::configure(FlagReader& reader) {
  const bool is_nano = preset_name_.starts_with(kTaehvNano);
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
  configure_teacher(reader);
  configure_loss(reader);
  configure_adversary(reader);
  bad_share_max_ = reader.choice("--bad-data-max", "1%", "a share such as 1% or 0.01", share_from);
  reading_.frame_cache_bytes =
      reader.choice("--frame-cache", "512MiB", kByteSizeRule, byte_size_from);
  reading_.decoder_flag = "--video-decoder";
  reading_.decoder =
      reader.choice(reading_.decoder_flag, "cpu", "cpu, cuda, vaapi or auto", video_decoder_named);
  if (reader.is_given("--video-index")) index_file_ = reader.text("--video-index");
  if (reader.is_given("--recompute"))
    reader.fail("--recompute", "true",
                "taehv keeps all that it computes; a smaller --micro-batch "
                "takes less memory");
}

LatentGrid TaehvWorkload::latent_grid() const {
  return {.channels = config_.latent_channels,
          .frames = config_.frames_of_latent(),
          .pixels = config_.pixels_of_latent()};
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

/// What it can't be used for otherwise.
std::optional<Error> TaehvWorkload::add(const VideoFiles& files, const DataPaths& data,
                                        IndexedVideos& opener, Usable& usable) const {
  auto video = opener.open(files);
  if (!video) return video.error();
  const auto shape = (*video)->shape();
  if (auto why = unfit(shape, files.name())) return why;
  if (has_teacher(data)) {
    auto latents = TeacherLatents::open(teacher_file(teacher_folder_, files.name(), data.paths),
                                        shape, latent_grid());
    if (!latents) return latents.error();
    usable.latents.push_back(std::move(*latents));
  }
  usable.videos.push_back(std::move(*video));
  return std::nullopt;
}

TaehvWorkload::Usable TaehvWorkload::open_all(const std::vector<VideoFiles>& found,
                                              const DataPaths& data, IndexedVideos& opener) const {
  Usable usable;
  for (const auto& files : found)
    if (auto why = add(files, data, opener, usable)) usable.left_out.push_back(std::move(*why));
  return usable;
}

OpenedData TaehvWorkload::open_data(const DataPaths& data) {
  const auto failed = [](const Error& error) {
    return OpenedData{.source = {}, .failure = bad_data(error)};
  };
  const auto found = find_videos(data.paths, data.flag);
  if (!found) return failed(found.error());
  reading_.device_number = data.device_number;
  opener_.set(reading_);
  if (const auto ready = opener_.prepare_for(*found); !ready)
    return {.source = {}, .failure = bad_config(ready.error())};
  IndexedVideos indexed(opener_);
  if (!index_file_.empty())
    if (const auto used = indexed.use(index_file_); !used) return failed(used.error());
  auto usable = open_all(*found, data, indexed);
  const BadVideos bad{
      .count = usable.left_out.size(), .of = found->size(), .share_max = bad_share_max_};
  if (usable.videos.empty() || bad.are_too_many())
    return failed({.code = Code::invalid,
                   .message = bad.text() + ": " + left_out_text(usable.left_out),
                   .subject = data.flag + " " + data.paths.front()});
  auto source = std::make_unique<ClipSamples>(
      std::move(usable.videos), ClipSamples::Options{.shape = clip_,
                                                     .is_drawn = !data.is_eval,
                                                     .weight = values_of_clip(),
                                                     .bad = bad,
                                                     .latents = std::move(usable.latents),
                                                     .grid = latent_grid()});
  const std::string row = data.is_eval ? "eval videos" : "videos";
  settings_.push_back({row, source->description(), "computed"});
  if (bad.count > 0)
    settings_.push_back({row + " left out", bad.count_text(), left_out_text(usable.left_out)});
  if (indexed.opened() > 0)
    settings_.push_back(
        {row + " by index",
         std::to_string(indexed.indexed()) + " of " + std::to_string(indexed.opened()),
         indexed.text()});
  if (reading_.decoder == "auto" && !data.is_eval)
    settings_.push_back({"videos decoded by", opener_.decoder(), "computed"});
  return {.source = std::move(source), .failure = {}};
}

OpenedData TaehvWorkload::make_up_data() {
  const auto grid = latent_grid();
  std::vector<MadeUpTensor> clip{{.type = HostTensor::Type::uint8,
                                  .shape = {clip_.frames, kImageChannels, clip_.side, clip_.side}}};
  if (!teacher_folder_.empty())
    clip.push_back({.type = HostTensor::Type::float32,
                    .shape = {clip_.frames / grid.frames, grid.channels, clip_.side / grid.pixels,
                              clip_.side / grid.pixels}});
  return {.source = std::make_unique<MadeUpSamples>(std::move(clip), values_of_clip()),
          .failure = {}};
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
  const auto grid = latent_grid();
  const auto latents = teacher_folder_.empty()
                           ? 0
                           : clip_.frames / grid.frames * grid.channels *
                                 (clip_.side / grid.pixels) * (clip_.side / grid.pixels);
  return {.flops = kForwardAndBackward * static_cast<double>(clip_.frames) *
                       taehv_flops_of_frame(config_, clip_.side, clip_.side) +
                   adversary_flops(),
          .formula = "3 x the convolutions of one frame",
          .bytes = clip_.frames * kImageChannels * clip_.side * clip_.side +
                   latents * static_cast<std::int64_t>(sizeof(float))};
}

/// 10 log10(1 / mean squared error), of values in [0, 1]: the logarithm of a mean over all ranks.
std::vector<Metric> TaehvWorkload::metrics() const {
  const auto mean_of = [](std::size_t sum) {
    return [sum](std::span<const double> sums, double weight) { return sums[sum] / weight; };
  };
  std::vector<Metric> metrics{
      {.name = "psnr",
       .label = "PSNR",
       .unit = "dB",
       .decimals = 2,
       .finish = [](auto sums, double weight) { return 10 * std::log10(weight / sums[0]); }},
      {.name = "ssim",
       .label = "SSIM",
       .unit = "",
       .is_of_evaluations = true,
       .finish = mean_of(1)}};
  const auto add = [&](const std::string& name, const std::string& label) {
    metrics.push_back({.name = name,
                       .label = label,
                       .unit = "",
                       .is_of_training = true,
                       .finish = mean_of(metrics.size())});
  };
  if (loss_.latent > 0) add("latent_error", "latent error");
  if (loss_.adversarial > 0) add("adversarial", "discriminator");
  return metrics;
}

WorkloadEntry taehv_entry() {
  return {.name = "taehv",
          .title = "a tiny autoencoder for video",
          .data_help = "folder of videos or of pictures, or a video; may be given several times",
          .presets = taehv_presets(),
          .flags = kFlags,
          .commands = taehv_commands(),
          .make = [](const Preset& preset) -> std::unique_ptr<Workload> {
            return std::make_unique<TaehvWorkload>(preset);
          }};
}

}  // namespace tj::trainer
