#include "trainer/workloads/taehv/taehv.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "trainer/workload/initial_tensor.h"
#include "trainer/workloads/taehv/ssim.h"
#include "trainer/workloads/taehv/taehv_config.h"

namespace tj::trainer {
namespace {

const Preset& preset_of(const std::string& name) {
  return *std::ranges::find(taehv_presets(), name, &Preset::name);
}
TaehvConfig model_of(const std::string& name) { return taehv_model(preset_of(name)); }

std::int64_t elements(const std::vector<TensorSpec>& tensors, const std::string& prefix) {
  std::int64_t sum = 0;
  for (const auto& tensor : tensors)
    if (tensor.name.starts_with(prefix)) sum += element_count(tensor);
  return sum;
}

/// Of the published checkpoints, and of the document.
TEST(Taehv, has_as_many_parameters_as_the_published_models) {
  const std::map<std::string, std::int64_t> published = {
      {"taehv", 11'315'539},         {"taehv1_5", 11'372'012},       {"taeh3", 11'348'964},
      {"taew2_2", 11'418'108},       {"taeltx", 11'759'728},         {"taehv1_5_super", 20'470'572},
      {"taew2_2_super", 20'487'996}, {"taeltx2_3_wide", 30'173'104}, {"taehv-nano", 277'139},
      {"taehv-nano-super", 208'499}};
  for (const auto& [name, count] : published)
    EXPECT_EQ(elements(taehv_layers(model_of(name)).tensors, ""), count) << name;
  const auto tensors = taehv_layers(model_of("taehv")).tensors;
  EXPECT_EQ(elements(tensors, "encoder."), 1'470'928);
  EXPECT_EQ(elements(tensors, "decoder."), 9'844'611);
}

TEST(Taehv, names_and_shapes_are_those_of_the_published_files) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const auto& tensor : taehv_layers(model_of("taehv")).tensors)
    shapes[tensor.name] = tensor.shape;
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(shapes.at("encoder.0.weight"), (Shape{64, 3, 3, 3}));
  EXPECT_EQ(shapes.at("encoder.2.conv.weight"), (Shape{64, 128, 1, 1}));
  EXPECT_EQ(shapes.at("encoder.3.weight"), (Shape{64, 64, 3, 3}));
  EXPECT_FALSE(shapes.contains("encoder.3.bias"));
  EXPECT_EQ(shapes.at("encoder.4.conv.0.weight"), (Shape{64, 128, 3, 3}));
  EXPECT_EQ(shapes.at("encoder.6.conv.4.bias"), (Shape{64}));
  EXPECT_EQ(shapes.at("encoder.12.conv.weight"), (Shape{64, 64, 1, 1}));
  EXPECT_EQ(shapes.at("encoder.17.weight"), (Shape{16, 64, 3, 3}));
  EXPECT_EQ(shapes.at("decoder.1.weight"), (Shape{256, 16, 3, 3}));
  EXPECT_EQ(shapes.at("decoder.3.conv.0.weight"), (Shape{256, 512, 3, 3}));
  EXPECT_EQ(shapes.at("decoder.7.conv.weight"), (Shape{256, 256, 1, 1}));
  EXPECT_EQ(shapes.at("decoder.8.weight"), (Shape{128, 256, 3, 3}));
  EXPECT_EQ(shapes.at("decoder.13.conv.weight"), (Shape{256, 128, 1, 1}));
  EXPECT_EQ(shapes.at("decoder.19.conv.weight"), (Shape{128, 64, 1, 1}));
  EXPECT_EQ(shapes.at("decoder.22.weight"), (Shape{3, 64, 3, 3}));
  EXPECT_EQ(shapes.at("decoder.22.bias"), (Shape{3}));
}

TEST(Taehv, names_of_one_shape_are_of_one_model) {
  for (const auto* const name : {"taew2_1", "taecvx", "taeos1_3"})
    EXPECT_EQ(model_of(name), model_of("taehv")) << name;
  for (const auto* const name : {"taeltx_2", "taeltx2_3"})
    EXPECT_EQ(model_of(name), model_of("taeltx")) << name;
}

TEST(Taehv, names_and_shapes_of_the_larger_decoders_are_those_of_the_published_files) {
  using Shape = std::vector<std::int64_t>;
  const auto shapes_of = [](const char* name) {
    std::map<std::string, Shape> shapes;
    for (const auto& tensor : taehv_layers(model_of(name)).tensors)
      shapes[tensor.name] = tensor.shape;
    return shapes;
  };
  const auto large = shapes_of("taew2_2_super");
  EXPECT_EQ(large.at("decoder.0.weight"), (Shape{512, 48, 1, 1}));
  EXPECT_FALSE(large.contains("decoder.0.bias"));
  EXPECT_EQ(large.at("decoder.1.conv.0.weight"), (Shape{1024, 1, 7, 7}));
  EXPECT_FALSE(large.contains("decoder.1.conv.0.bias"));
  EXPECT_EQ(large.at("decoder.1.conv.1.weight"), (Shape{2048, 1024, 1, 1}));
  EXPECT_EQ(large.at("decoder.3.conv.1.bias"), (Shape{2048}));
  EXPECT_EQ(large.at("decoder.3.conv.3.weight"), (Shape{512, 2048, 1, 1}));
  EXPECT_FALSE(large.contains("decoder.3.conv.3.bias"));
  EXPECT_EQ(large.at("decoder.4.weight"), (Shape{1024, 512, 3, 3}));
  EXPECT_EQ(large.at("decoder.4.bias"), (Shape{1024}));
  EXPECT_EQ(large.at("decoder.7.conv.weight"), (Shape{256, 256, 1, 1}));
  EXPECT_EQ(large.at("decoder.14.conv.weight"), (Shape{256, 128, 1, 1}));
  EXPECT_EQ(large.at("decoder.21.conv.weight"), (Shape{128, 64, 1, 1}));
  EXPECT_EQ(large.at("decoder.22.weight"), (Shape{12, 64, 3, 3}));
  const auto wide = shapes_of("taeltx2_3_wide");
  EXPECT_EQ(wide.at("decoder.1.weight"), (Shape{1024, 128, 3, 3}));
  EXPECT_EQ(wide.at("decoder.3.conv.0.weight"), (Shape{1024, 2048, 1, 1}));
  EXPECT_EQ(wide.at("decoder.3.conv.2.weight"), (Shape{1024, 64, 3, 3}));
  EXPECT_EQ(wide.at("decoder.9.conv.4.weight"), (Shape{512, 512, 1, 1}));
  EXPECT_EQ(wide.at("decoder.15.conv.6.bias"), (Shape{256}));
  EXPECT_EQ(wide.at("decoder.20.weight"), (Shape{64, 256, 3, 3}));
  EXPECT_EQ(wide.at("decoder.22.weight"), (Shape{48, 64, 3, 3}));
}

TEST(Taehv, a_checkpoint_says_which_decoder_it_is_of) {
  EXPECT_NE(taehv_shape(model_of("taehv-nano")), taehv_shape(model_of("taehv-nano-super")));
  const auto text = taehv_config_json(model_of("taehv-nano-super"));
  EXPECT_NE(text.find("\"decoder\": \"super\""), std::string::npos) << text;
}

TEST(Taehv, blocks_hold_each_tensor_once) {
  for (const auto& preset : taehv_presets()) {
    const auto layers = taehv_layers(taehv_model(preset));
    std::vector<std::size_t> all;
    for (const auto& block : taehv_blocks(layers))
      all.insert(all.end(), block.tensors.begin(), block.tensors.end());
    ASSERT_EQ(all.size(), layers.tensors.size());
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i);
  }
}

/// One name of each shape.
std::vector<std::string> all_shapes() {
  std::vector<std::string> names;
  for (const auto& preset : taehv_presets()) {
    const auto is_same = [&](const auto& name) { return model_of(name) == taehv_model(preset); };
    if (std::ranges::none_of(names, is_same)) names.emplace_back(preset.name);
  }
  return names;
}

/// The variant with few channels: what is shown of it does not depend on their number.
TaehvConfig small(const std::string& name) {
  auto config = model_of(name);
  config.encoder_width = 8;
  config.decoder_widths = {16, 8, 8, 8};
  return config;
}

at::Tensor some_frames(std::int64_t clips, std::int64_t frames, std::int64_t side) {
  torch::manual_seed(3);
  return torch::rand({clips, frames, 3, side, side});
}

TEST(Taehv, shapes_follow_from_the_variant) {
  for (const auto& name : all_shapes()) {
    const auto config = small(name);
    const Taehv model(config, {}, {});
    const at::NoGradGuard no_gradients;
    const auto side = config.pixels_of_latent() * 2, whole = config.frames_of_latent();
    const auto latents = model.encode(some_frames(2, 2 * whole, side));
    EXPECT_EQ(latents.sizes(), at::IntArrayRef({2, 2, config.latent_channels, 2, 2}));
    EXPECT_EQ(model.decode(latents).sizes(),
              at::IntArrayRef({2, 2 * whole - config.frames_to_trim(), 3, side, side}));
  }
}

TEST(Taehv, frame_by_frame_it_makes_what_the_whole_clip_makes) {
  for (const auto& name : all_shapes()) {
    const auto config = small(name);
    const Taehv model(config, {}, {});
    const at::NoGradGuard no_gradients;
    // Not a multiple of a latent's: the end is filled up.
    const auto frames =
        some_frames(2, 2 * config.frames_of_latent() + 1, config.pixels_of_latent());
    const auto latents = model.encode(frames);
    TaehvStream encoder(model, TaehvStream::Side::encoder);
    std::vector<at::Tensor> streamed;
    const auto take = [&](std::vector<at::Tensor> made) {
      streamed.insert(streamed.end(), made.begin(), made.end());
    };
    for (std::int64_t t = 0; t < frames.size(1); ++t) take(encoder.push(frames.select(1, t)));
    take(encoder.finish());
    ASSERT_EQ(static_cast<std::int64_t>(streamed.size()), latents.size(1)) << name;
    EXPECT_LT((at::stack(streamed, 1) - latents).abs().max().item<double>(), 1e-5) << name;

    const auto decoded = model.decode(latents);
    TaehvStream decoder(model, TaehvStream::Side::decoder);
    streamed.clear();
    for (std::int64_t t = 0; t < latents.size(1); ++t) take(decoder.push(latents.select(1, t)));
    ASSERT_EQ(static_cast<std::int64_t>(streamed.size()), decoded.size(1)) << name;
    EXPECT_LT((at::stack(streamed, 1) - decoded).abs().max().item<double>(), 1e-5) << name;
  }
}

TEST(Taehv, begins_with_a_grey_picture) {
  for (const auto* const name : {"taehv", "taew2_2_super", "taeltx2_3_wide"}) {
    const auto config = small(name);
    const Taehv model(config, {}, {});
    const at::NoGradGuard no_gradients;
    const auto made = model.decode(
        model.encode(some_frames(1, 2 * config.frames_of_latent(), 2 * config.pixels_of_latent())));
    EXPECT_NEAR(made.mean().item<double>(), 0.5, 0.2) << name;
  }
}

TEST(Taehv, the_super_decoder_sees_the_frame_before_and_none_behind) {
  const Taehv model(small("taew2_2_super"), {}, {});
  const at::NoGradGuard no_gradients;
  const auto latents = torch::zeros({1, 3, 48, 12, 12});
  auto other = latents.clone();
  other.select(1, 1).select(2, 6).select(2, 0) += 1;  // one place of the middle one
  const auto changed =
      (model.decode(other) - model.decode(latents)).abs().amax({0, 2}).amax({1, 2});
  // Frame 0 is of the first latent; those of the second are 1 to 4, of the third 5 to 8.
  EXPECT_EQ(changed[0].item<double>(), 0);
  EXPECT_GT(changed.slice(0, 1, 5).min().item<double>(), 0);
  EXPECT_GT(changed.slice(0, 5, 9).max().item<double>(), 0);
}

TEST(Taehv, the_loss_is_of_the_frames_that_are_reconstructed) {
  const auto config = small("taehv");
  const Taehv both(config, {.squared = 2, .absolute = 3}, {});
  const at::NoGradGuard no_gradients;
  const auto bytes = (some_frames(2, 8, 16) * 255).round().to(at::kByte);
  const auto frames = bytes.to(at::kFloat) / 255;
  const auto sums = both.pass({bytes}, {});
  const auto error = both.decode(both.encode(frames)) - frames.slice(1, config.frames_to_trim());
  // What is beyond black and white counts for the loss, and not for the metric.
  EXPECT_NEAR(sums.metrics.at(0).item<double>(), error.square().sum().item<double>(), 1e-2);
  EXPECT_GE(sums.loss.item<double>(),
            (2 * error.square().sum() + 3 * error.abs().sum()).item<double>() - 1e-2);
}

TEST(Taehv, steps_dont_compute_the_similarity) {
  const Taehv model(small("taehv"), {}, {});
  const at::NoGradGuard no_gradients;
  const auto bytes = (some_frames(1, 8, 16) * 255).round().to(at::kByte);
  EXPECT_EQ(model.pass({bytes}, 0).metrics.at(1).item<double>(), 0);
  EXPECT_NE(model.pass({bytes}, {}).metrics.at(1).item<double>(), 0);
}

TEST(Taehv, the_picture_has_a_row_for_each_clip) {
  const Taehv model(small("taehv"), {}, {});
  const at::NoGradGuard no_gradients;
  const auto bytes = torch::full({2, 8, 3, 16, 24}, 200, torch::kByte);
  const auto picture = model.picture({bytes});
  EXPECT_EQ(picture.sizes(), at::IntArrayRef({2 * (16 + 2), 3 * (24 + 2), 3}));
  EXPECT_EQ(picture.scalar_type(), at::kByte);
  EXPECT_EQ(picture[3][3][0].item<int>(), 200);   // as it is
  EXPECT_EQ(picture[17][3][0].item<int>(), 255);  // the gap below
  const double made = picture[20 + 3][26 + 3][1].item<int>(),
               error = picture[20 + 3][52 + 3][1].item<int>();
  EXPECT_NEAR(std::min(255.0, 4 * std::abs(made - 200)), error, 4);
}

/// By the paper's own properties, and a value that follows by hand: of two constant pictures only
/// the luminance differs.
TEST(Ssim, is_one_for_equal_pictures_and_known_for_constant_ones) {
  const auto noise = torch::rand({2, 3, 16, 16});
  EXPECT_NEAR(ssim(noise, noise).item<double>(), 1, 1e-6);
  EXPECT_LT(ssim(noise, torch::rand({2, 3, 16, 16})).item<double>(), 0.2);
  const auto one = torch::full({1, 3, 16, 16}, 0.25), other = torch::full({1, 3, 16, 16}, 0.5);
  const double expected = (2 * 0.25 * 0.5 + 1e-4) / (0.25 * 0.25 + 0.5 * 0.5 + 1e-4);
  EXPECT_NEAR(ssim(one, other).item<double>(), expected, 1e-5);
  EXPECT_NEAR(ssim(one.slice(3, 0, 8), other.slice(3, 0, 8)).item<double>(), expected, 1e-5);
}

TEST(Taehv, work_of_a_frame_is_that_of_its_convolutions) {
  // One tensor of [out, in, side, side] costs 2 x elements for each pixel of its output.
  const auto config = model_of("taehv");
  const double one = taehv_flops_of_frame(config, 64, 64);
  EXPECT_DOUBLE_EQ(taehv_flops_of_frame(config, 128, 64), 2 * one);
  // By hand: the first convolution, 64 x 3 x 9 at 4,096 pixels, is the least of it.
  EXPECT_GT(one, 2.0 * 64 * 3 * 9 * 4096);
  // Summed up by another program, stage by stage.
  EXPECT_DOUBLE_EQ(one, 1740668928);
  EXPECT_DOUBLE_EQ(taehv_flops_of_frame(model_of("taew2_2_super"), 64, 64), 661061632);
  EXPECT_DOUBLE_EQ(taehv_flops_of_frame(model_of("taeltx2_3_wide"), 64, 64), 305885184);
}

}  // namespace
}  // namespace tj::trainer
