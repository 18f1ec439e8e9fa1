// A video to latents and back in a stream: which frame becomes which, sizes that are no multiple,
// and how close it is said to be.
#include "trainer/workloads/taehv/codec.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "trainer/workloads/taehv/ssim.h"

namespace tj::trainer {
namespace {

/// Each variant once, with few channels: what is shown of it does not depend on their number.
std::vector<TaehvConfig> small_variants() {
  std::vector<TaehvConfig> variants;
  for (const auto& preset : taehv_presets()) {
    auto config = taehv_model(preset);
    config.encoder_width = 8;
    config.decoder_widths = {16, 8, 8, 8};
    if (std::ranges::find(variants, config) == variants.end()) variants.push_back(config);
  }
  return variants;
}

/// A video in memory, which says when it is not read in its order.
class Frames final : public Video {
 public:
  explicit Frames(at::Tensor frames) : frames_(std::move(frames)) {}
  VideoShape shape() const override {
    return {.frames = frames_.size(0), .height = frames_.size(1), .width = frames_.size(2)};
  }
  Result<void> read(std::span<const std::int64_t> numbers,
                    std::span<std::byte> rgb) const override {
    const auto bytes = shape().frame_bytes();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] != next_++) return Error{.code = Code::invalid, .message = "goes back"};
      std::memcpy(rgb.data() + i * bytes, frames_[numbers[i]].const_data_ptr(), bytes);
    }
    return {};
  }

 private:
  const at::Tensor frames_;
  mutable std::int64_t next_ = 0;
};

at::Tensor some_frames(std::int64_t frames, std::int64_t height, std::int64_t width) {
  torch::manual_seed(5);
  return torch::randint(0, 256, {frames, height, width, 3}, torch::kByte);
}

struct Made {
  std::vector<at::Tensor> latents;
  at::Tensor frames;  // [frames, H, W, 3]
};

Made streamed(const Taehv& model, const TaehvConfig& config, const at::Tensor& frames) {
  const Frames video(frames);
  FrameReader reader(video, at::kCPU);
  VideoEncoder encoder(model, config);
  VideoDecoder decoder(model, video.shape());
  Made made;
  std::vector<at::Tensor> decoded;
  const auto take = [&](const std::vector<at::Tensor>& latents) {
    for (const auto& latent : latents) {
      made.latents.push_back(latent);
      const auto more = decoder.push(latent);
      if (more.defined()) decoded.push_back(more);
    }
  };
  while (true) {
    const auto next = reader.next();
    EXPECT_TRUE(next) << describe(next.error());
    if (!next->defined()) break;
    take(encoder.push(*next));
  }
  take(encoder.finish());
  made.frames = at::cat(decoded);
  return made;
}

/// The same by the whole clip at once, filled up by hand.
Made at_once(const Taehv& model, const TaehvConfig& config, const at::Tensor& frames) {
  const auto pixels = config.pixels_of_latent();
  const auto ceil = [&](std::int64_t extent) { return (extent + pixels - 1) / pixels * pixels; };
  const auto height = frames.size(1), width = frames.size(2);
  const auto rows = torch::arange(ceil(height)).clamp_max(height - 1);
  const auto columns = torch::arange(ceil(width)).clamp_max(width - 1);
  const auto filled = frames.index_select(1, rows).index_select(2, columns);
  const auto before = filled.narrow(0, 0, 1).expand({config.frames_to_trim(), -1, -1, -1});
  const auto clip = at::cat({before, filled}).permute({0, 3, 1, 2}).unsqueeze(0);
  const auto latents = model.encode(clip.to(at::kFloat) / 255);
  const auto decoded = model.decode(latents)[0].slice(0, 0, frames.size(0));
  const auto bytes = (decoded * 255).round().to(at::kByte).permute({0, 2, 3, 1});
  return {.latents = latents[0].split(1), .frames = bytes.slice(1, 0, height).slice(2, 0, width)};
}

TEST(Codec, a_stream_makes_what_the_whole_video_makes) {
  for (const auto& config : small_variants()) {
    const Taehv model(config, {}, {});
    const at::NoGradGuard no_gradients;
    const auto side = config.pixels_of_latent();
    for (const std::int64_t count :
         {std::int64_t{1}, 2 * config.frames_of_latent(), 3 * config.frames_of_latent() - 2}) {
      const auto frames = some_frames(count, side + 3, 2 * side - 1);
      const auto made = streamed(model, config, frames);
      const auto wanted = at_once(model, config, frames);
      ASSERT_EQ(made.latents.size(), wanted.latents.size()) << taehv_config_json(config) << count;
      for (std::size_t i = 0; i < made.latents.size(); ++i)
        EXPECT_LT((made.latents[i] - wanted.latents[i]).abs().max().item<double>(), 1e-5);
      ASSERT_EQ(made.frames.sizes(), frames.sizes()) << taehv_config_json(config) << count;
      // A byte may be rounded to its other side.
      const auto apart = (made.frames.to(at::kInt) - wanted.frames.to(at::kInt)).abs();
      EXPECT_LE(apart.max().item<int>(), 1);
      const VideoShape video{.frames = count, .height = side + 3, .width = 2 * side - 1};
      EXPECT_EQ(latents_shape(config, video)[0], static_cast<std::int64_t>(made.latents.size()));
      EXPECT_EQ(made.latents[0].sizes(), at::IntArrayRef({1, config.latent_channels, 2, 2}));
    }
  }
}

/// By what a decoder with the encoder's own inverse in it would show: each frame of one brightness,
/// which the pass of a training compares with frame i + frames_to_trim() of its clip.
TEST(Codec, it_is_the_alignment_of_the_training) {
  for (const auto& config : small_variants()) {
    const Taehv model(config, {}, {});
    const at::NoGradGuard no_gradients;
    const auto trim = config.frames_to_trim();
    const auto side = config.pixels_of_latent();
    const auto frames = some_frames(3 * config.frames_of_latent() - trim, side, side);
    const auto clip = at::cat({frames.narrow(0, 0, 1).expand({trim, -1, -1, -1}), frames});
    const auto sums = model.pass({clip.permute({0, 3, 1, 2}).unsqueeze(0).contiguous()}, {});
    FrameComparison comparison;
    comparison.add(frames, streamed(model, config, frames).frames);
    const double error = sums.metrics[0].item<double>() / static_cast<double>(frames.numel());
    EXPECT_NEAR(comparison.psnr(), -10 * std::log10(error), 0.05) << taehv_config_json(config);
  }
}

TEST(Codec, of_latents_alone_the_whole_video_is_made) {
  const auto config = taehv_model(taehv_presets().front());
  const auto video = video_of_latents(config, {5, 16, 3, 4});
  EXPECT_EQ(video.frames, 17);
  EXPECT_EQ(video.height, 24);
  EXPECT_EQ(video.width, 32);
  EXPECT_EQ(latents_shape(config, video), (std::vector<std::int64_t>{5, 16, 3, 4}));
}

TEST(FrameComparison, tells_psnr_and_ssim_of_all_frames) {
  const auto one = some_frames(5, 16, 24);
  const auto other = one.bitwise_xor(1);  // each value is off by one
  FrameComparison comparison;
  comparison.add(one.slice(0, 0, 2), other.slice(0, 0, 2));
  comparison.add(one.slice(0, 2), other.slice(0, 2));
  EXPECT_EQ(comparison.frames(), 5);
  EXPECT_NEAR(comparison.psnr(), 20 * std::log10(255.0), 1e-9);
  const auto planes = [](const at::Tensor& frames) {
    return frames.permute({0, 3, 1, 2}).to(at::kFloat) / 255;
  };
  EXPECT_NEAR(comparison.ssim().value_or(0), ssim(planes(one), planes(other)).item<double>(), 1e-5);
}

TEST(FrameComparison, equal_frames_are_infinitely_close_and_small_ones_have_no_ssim) {
  const auto frames = some_frames(2, 5, 64);
  FrameComparison comparison;
  comparison.add(frames, frames);
  EXPECT_TRUE(std::isinf(comparison.psnr()));
  EXPECT_FALSE(comparison.ssim());
}

}  // namespace
}  // namespace tj::trainer
