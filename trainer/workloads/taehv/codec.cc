#include "trainer/workloads/taehv/codec.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/workloads/taehv/ssim.h"

namespace tj::trainer {
namespace {

constexpr double kByteMax = 255;
constexpr std::int64_t kFramesOfRead = 8;                    // at most
constexpr std::size_t kBytesOfRead = std::size_t{32} << 20;  // unless a single frame has more
constexpr std::int64_t kSsimSideMin = 7;                     // pixels: the smaller window of ssim()

std::int64_t ceil_of(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

/// [frames, H, W, 3] as [frames, 3, H, W] in [0, 1].
at::Tensor planes_of(const at::Tensor& frames) {
  return frames.permute({0, 3, 1, 2}).to(at::kFloat) / kByteMax;
}

}  // namespace

std::vector<std::int64_t> latents_shape(const TaehvConfig& config, const VideoShape& video) {
  const auto pixels = config.pixels_of_latent();
  return {ceil_of(video.frames + config.frames_to_trim(), config.frames_of_latent()),
          config.latent_channels, ceil_of(video.height, pixels), ceil_of(video.width, pixels)};
}

VideoShape video_of_latents(const TaehvConfig& config, const std::vector<std::int64_t>& latents) {
  const auto pixels = config.pixels_of_latent();
  return {.frames = latents[0] * config.frames_of_latent() - config.frames_to_trim(),
          .height = latents[2] * pixels,
          .width = latents[3] * pixels};
}

FrameReader::FrameReader(const Video& video, at::Device device)
    : video_(video), shape_(video.shape()), device_(device) {}

Result<at::Tensor> FrameReader::next() {
  const auto fitting = static_cast<std::int64_t>(kBytesOfRead / shape_.frame_bytes());
  const auto count =
      std::min(std::clamp<std::int64_t>(fitting, 1, kFramesOfRead), shape_.frames - read_);
  if (count == 0) return at::Tensor();
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(read_ + i);
  auto frames = torch::empty({count, shape_.height, shape_.width, kRgbChannels}, at::kByte);
  const std::span bytes(reinterpret_cast<std::byte*>(frames.data_ptr<std::uint8_t>()),
                        static_cast<std::size_t>(frames.numel()));
  if (const auto read = video_.read(numbers, bytes); !read) return read.error();
  read_ += count;
  return frames.to(device_);
}

VideoEncoder::VideoEncoder(const Taehv& model, const TaehvConfig& config)
    : stream_(model, TaehvStream::Side::encoder),
      multiple_(config.pixels_of_latent()),
      before_(config.frames_to_trim()) {}

/// In [0, 1], filled up to whole latents.
at::Tensor VideoEncoder::input_of(const at::Tensor& frame) const {
  const auto planes = planes_of(frame);
  const auto missing = [&](std::int64_t extent) {
    return ceil_of(extent, multiple_) * multiple_ - extent;
  };
  const auto right = missing(planes.size(3)), below = missing(planes.size(2));
  return right + below == 0 ? planes : at::replication_pad2d(planes, {0, right, 0, below});
}

std::vector<at::Tensor> VideoEncoder::push(const at::Tensor& frames) {
  std::vector<at::Tensor> latents;
  for (std::int64_t i = 0; i < frames.size(0); ++i) {
    const auto input = input_of(frames.narrow(0, i, 1));
    for (auto times = 1 + std::exchange(before_, 0); times > 0; --times)
      for (const auto& latent : stream_.push(input)) latents.push_back(latent.to(at::kFloat));
  }
  return latents;
}

std::vector<at::Tensor> VideoEncoder::finish() {
  std::vector<at::Tensor> latents;
  for (const auto& latent : stream_.finish()) latents.push_back(latent.to(at::kFloat));
  return latents;
}

VideoDecoder::VideoDecoder(const Taehv& model, const VideoShape& video)
    : stream_(model, TaehvStream::Side::decoder), video_(video), left_(video.frames) {}

at::Tensor VideoDecoder::push(const at::Tensor& latent) {
  auto made = stream_.push(latent);
  made.resize(static_cast<std::size_t>(std::min(left_, static_cast<std::int64_t>(made.size()))));
  if (made.empty()) return {};
  left_ -= static_cast<std::int64_t>(made.size());
  const auto planes = at::cat(made).slice(2, 0, video_.height).slice(3, 0, video_.width);
  return (planes * kByteMax).round().to(at::kByte).permute({0, 2, 3, 1}).contiguous();
}

void FrameComparison::add(const at::Tensor& frames, const at::Tensor& others) {
  // Of whole numbers, which a double adds up without a loss.
  const auto errors = (frames.to(at::kFloat) - others.to(at::kFloat)).square().sum(at::kDouble);
  squared_errors_ = squared_errors_.defined() ? squared_errors_ + errors : errors;
  frames_ += frames.size(0);
  values_ += frames.numel();
  if (std::min(frames.size(1), frames.size(2)) < kSsimSideMin) return;
  for (std::int64_t i = 0; i < frames.size(0); ++i) {
    const auto similarity =
        trainer::ssim(planes_of(frames.narrow(0, i, 1)), planes_of(others.narrow(0, i, 1)))
            .to(at::kDouble);
    similarities_ = similarities_.defined() ? similarities_ + similarity : similarity;
  }
}

double FrameComparison::psnr() const {
  const double error = squared_errors_.item<double>() / static_cast<double>(values_);
  return 10 * std::log10(kByteMax * kByteMax / error);
}

std::optional<double> FrameComparison::ssim() const {
  if (!similarities_.defined()) return std::nullopt;
  return similarities_.item<double>() / static_cast<double>(frames_);
}

}  // namespace tj::trainer
