// The discriminator, its correction, and what of both reaches which gradient.
#include "trainer/workloads/taehv/adversary.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "trainer/workload/initial_tensor.h"
#include "trainer/workloads/taehv/taehv.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kSide = 16;
constexpr std::int64_t kRows = 16;

TaehvConfig config_of(const std::string& name) {
  return taehv_model(*std::ranges::find(taehv_presets(), name, &Preset::name));
}

TaehvConfig small() {
  auto config = config_of("taehv");
  config.latent_channels = 4;
  config.encoder_width = 8;
  config.decoder_widths = {16, 8, 8, 8};
  return config;
}

constexpr ReplayShape kReplay{.side = kSide, .latent_channels = 4, .latent_side = 2};

StepMemory empty_memory() {
  return {{.name = "replay", .rows = kRows, .row_bytes = kReplay.row_bytes()}, at::kCPU};
}

std::vector<at::Tensor> discriminator() {
  return initial_tensors(discriminator_tensors(small()), {.seed = 4}, {});
}

SeenClips some_clips(std::int64_t clips, std::int64_t frames = 5) {
  torch::manual_seed(8);
  return {.real = torch::rand({clips, frames, 3, kSide, kSide}),
          .made = torch::rand({clips, frames, 3, kSide, kSide}),
          .latents = torch::randn({clips, 2, 4, 2, 2})};
}

SeenClips clip_of(const SeenClips& clips, std::int64_t index) {
  return {.real = clips.real.narrow(0, index, 1),
          .made = clips.made.narrow(0, index, 1),
          .latents = clips.latents.narrow(0, index, 1)};
}

std::int64_t trained(const std::vector<TensorSpec>& tensors) {
  std::int64_t sum = 0;
  for (const auto& tensor : tensors)
    if (tensor.kind == TensorKind::trained) sum += element_count(tensor);
  return sum;
}

/// By hand: convolutions of 25, 64, 128, 256, 512 and 512 channels, two numbers of each channel for
/// its normalisation, and one weight of each for its score.
TEST(Discriminator, has_as_many_parameters_as_the_published_one) {
  constexpr std::int64_t kConvolutions =
      64 * 25 * 9 + 128 * 64 * 16 + 256 * 128 * 16 + 512 * 256 * 16 + 2 * (512 * 512 * 9);
  constexpr std::int64_t kChannels = 64 + 128 + 256 + 3 * 512;
  EXPECT_EQ(kConvolutions + 3 * kChannels, 7'491'456);
  EXPECT_EQ(trained(discriminator_tensors(config_of("taehv"))), 7'491'456);
  EXPECT_LT(trained(discriminator_tensors(config_of("taehv-nano"))), 500'000);
}

TEST(Discriminator, none_of_it_is_published_and_it_is_a_block_of_its_own) {
  const TaehvLoss loss{.adversarial = 1};
  const auto tensors = tensors_of(small(), loss), alone = tensors_of(small(), {});
  for (std::size_t i = 0; i < tensors.size(); ++i)
    EXPECT_EQ(tensors[i].is_published, i < alone.size()) << tensors[i].name;
  const auto blocks = blocks_of(small(), loss);
  ASSERT_EQ(blocks.size(), blocks_of(small(), {}).size() + 1);
  EXPECT_EQ(blocks.back().tensors.front(), alone.size());
  EXPECT_EQ(blocks.back().tensors.size(), tensors.size() - alone.size());
}

TEST(Discriminator, scores_groups_one_by_one_but_in_training) {
  const Discriminator scores(discriminator());
  const auto groups = torch::rand({3, 9, kSide, kSide}), context = torch::randn({3, 4, 2, 2});
  const auto all = scores.scores(groups, context);
  EXPECT_EQ(all.sizes(), at::IntArrayRef({3, 6, 2, 2}));
  EXPECT_FALSE(all.requires_grad());
  const auto one = scores.scores(groups.slice(0, 1, 2), context.slice(0, 1, 2));
  EXPECT_TRUE(torch::allclose(all.slice(0, 1, 2), one, 1e-4, 1e-5));
  EXPECT_TRUE(scores.scores_in_training(groups, context).requires_grad());
}

TEST(Frames, are_grouped_and_back) {
  const auto frames = torch::rand({2, 5, 3, 4, 4});
  const auto groups = grouped_frames(frames);
  EXPECT_EQ(groups.sizes(), at::IntArrayRef({4, 9, 4, 4}));
  EXPECT_TRUE(groups[1].slice(0, 6, 9).equal(frames[0][4])) << "the last one is repeated";
  EXPECT_TRUE(groups[2].slice(0, 0, 3).equal(frames[1][0]));
  EXPECT_TRUE(ungrouped_frames(groups, 2, 5).equal(frames));
}

TEST(Adversary, its_correction_brings_what_was_made_nearer_to_what_is_real) {
  const auto memory = empty_memory();
  const Adversary adversary(discriminator(), 1, memory);
  const auto clips = some_clips(2);
  const auto change = adversary.correction(clips);
  EXPECT_EQ(change.sizes(), clips.made.sizes());
  EXPECT_FALSE(change.requires_grad());
  for (std::int64_t clip = 0; clip < 2; ++clip) {
    // Below 1 as long as the discriminator hardly tells anything apart.
    const auto size = change[clip].std(/*unbiased=*/false).item<double>();
    EXPECT_GT(size, 0.05);
    EXPECT_LT(size, 1);
  }
  const Discriminator scores(discriminator());
  const auto distance = [&](const at::Tensor& made) {
    const auto context = clips.latents.mean(1).unsqueeze(1).expand({2, 2, 4, 2, 2}).flatten(0, 1);
    const at::NoGradGuard no_gradients;
    return (scores.scores(grouped_frames(made), context) -
            scores.scores(grouped_frames(clips.real), context))
        .square()
        .sum()
        .item<double>();
  };
  EXPECT_LT(distance(clips.made + 0.003 * change), distance(clips.made));
  EXPECT_GT(distance(clips.made - 0.003 * change), distance(clips.made));
}

/// So that it does not matter how the clips of a step are shared out.
TEST(Adversary, a_clip_is_corrected_by_itself) {
  const auto memory = empty_memory();
  const Adversary adversary(discriminator(), 1, memory);
  const auto clips = some_clips(3);
  const auto together = adversary.correction(clips);
  for (std::int64_t clip = 0; clip < 3; ++clip)
    EXPECT_TRUE(
        torch::allclose(together[clip], adversary.correction(clip_of(clips, clip))[0], 1e-2, 1e-3));
}

TEST(Adversary, what_it_draws_is_a_function_of_seed_and_sample) {
  auto memory = empty_memory();
  // Below 60 two bytes are a half-precision number below 1.
  memory.append(torch::randint(0, 60, {kRows / 2, kReplay.row_bytes()}, at::kByte));
  const auto clips = some_clips(4);
  const auto loss = [&](std::uint64_t seed, std::int64_t sample, const StepMemory& remembered) {
    return Adversary(discriminator(), seed, remembered).judge(clips, sample).loss.item<double>();
  };
  const double first = loss(1, 8, memory);
  EXPECT_TRUE(std::isfinite(first));
  EXPECT_EQ(loss(1, 8, memory), first);
  EXPECT_NE(loss(2, 8, memory), first);
  EXPECT_NE(loss(1, 12, memory), first);
  // What was never written is never drawn.
  auto dirty = empty_memory();
  dirty.append(memory.rows());
  dirty.rows().slice(0, kRows / 2).fill_(77);
  dirty.set_appended(kRows / 2);
  EXPECT_EQ(loss(1, 8, dirty), first);
  dirty.rows().fill_(77);
  EXPECT_NE(loss(1, 8, dirty), first) << "what was written is";
}

TEST(Adversary, remembers_the_bytes_of_what_was_made) {
  const auto memory = empty_memory();
  const Adversary adversary(discriminator(), 1, memory);
  auto clips = some_clips(2);
  clips.made = clips.made * 2 - 0.5;  // beyond black and white, too
  const auto rows = adversary.judge(clips, 0).rows;
  EXPECT_EQ(rows.sizes(), at::IntArrayRef({4, kReplay.row_bytes()}));
  EXPECT_EQ(rows.scalar_type(), at::kByte);
  const auto wanted = (grouped_frames(clips.made.clamp(0, 1)) * 255).round().to(at::kByte);
  EXPECT_TRUE(rows.slice(1, 0, kReplay.frame_bytes()).equal(wanted.flatten(1)));
  const auto context = rows.slice(1, kReplay.frame_bytes()).contiguous().view(at::kHalf);
  EXPECT_TRUE(context[2].equal(clips.latents[1].mean(0).to(at::kHalf).flatten()));
}

TEST(Adversary, only_its_own_training_moves_the_running_means) {
  const auto memory = empty_memory();
  const auto tensors = discriminator();
  const Adversary adversary(tensors, 1, memory);
  const auto& mean = tensors[3];
  adversary.correction(some_clips(2));
  EXPECT_EQ(mean.abs().sum().item<double>(), 0);
  adversary.judge(some_clips(2), 0);
  EXPECT_NE(mean.abs().sum().item<double>(), 0);
}

struct Gradients {
  std::vector<at::Tensor> autoencoder, discriminator;
  double loss = 0, own_loss = 0;
};

Gradients gradients(const TaehvLoss& loss) {
  const auto memory = empty_memory();
  const Taehv model(small(), loss, {.seed = 2}, {.place = {}, .memory = &memory});
  torch::manual_seed(6);
  const auto bytes = torch::randint(0, 256, {2, 8, 3, kSide, kSide}, at::kByte);
  const auto sums = model.pass({bytes}, 0);
  sums.loss.backward();
  Gradients result{.autoencoder = {},
                   .discriminator = {},
                   .loss = sums.loss.item<double>(),
                   .own_loss = sums.metrics.at(2).item<double>()};
  const auto specs = tensors_of(small(), loss);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].kind != TensorKind::trained) continue;
    (specs[i].is_published ? result.autoencoder : result.discriminator)
        .push_back(model.tensors()[i].grad().clone());
  }
  return result;
}

TEST(Adversary, neither_side_gets_the_gradient_of_the_other) {
  const auto once = gradients({.squared = 0, .adversarial = 1});
  const auto twice = gradients({.squared = 0, .adversarial = 2});
  for (std::size_t i = 0; i < once.discriminator.size(); ++i)
    EXPECT_TRUE(once.discriminator[i].equal(twice.discriminator[i])) << i;
  double sum = 0;
  for (std::size_t i = 0; i < once.autoencoder.size(); ++i) {
    EXPECT_TRUE(torch::allclose(once.autoencoder[i] * 2, twice.autoencoder[i], 1e-3, 1e-5)) << i;
    sum += once.autoencoder[i].abs().sum().item<double>();
  }
  EXPECT_GT(sum, 0);
  EXPECT_NEAR(twice.loss, 2 * once.loss, 1e-3 * once.loss) << "the discriminator's is not in it";
  EXPECT_GT(once.own_loss, 0);
  EXPECT_EQ(once.own_loss, twice.own_loss);
}

TEST(Adversary, an_evaluation_asks_nobody) {
  const auto memory = empty_memory();
  const Taehv model(small(), {.adversarial = 1}, {.seed = 2}, {.place = {}, .memory = &memory});
  const at::NoGradGuard no_gradients;
  const auto bytes = torch::randint(0, 256, {1, 8, 3, kSide, kSide}, at::kByte);
  const auto sums = model.pass({bytes}, {});
  EXPECT_EQ(sums.metrics.size(), 3U);
  EXPECT_EQ(sums.metrics.at(2).item<double>(), 0);
  EXPECT_FALSE(sums.remembered.defined());
}

}  // namespace
}  // namespace tj::trainer
