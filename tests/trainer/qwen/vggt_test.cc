#include "trainer/workloads/qwen_vggt/vggt.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>

#include "tests/trainer/engine/thread_ranks.h"
#include "tests/trainer/qwen/conversations.h"

namespace tj::trainer {
namespace {

const VggtConfig kSmall{.width = 64,
                        .hidden = 128,
                        .heads = 4,
                        .layers = 3,
                        .dino_layers = 2,
                        .patch_side = 14,
                        .positions_side = 2,
                        .registers = 4};

Vggt random_vggt(const ModelOptions& options = {}) {
  return {random_weights(vggt_tensors(kSmall).specs), kSmall, options};
}

at::Tensor frames(std::int64_t scenes, std::int64_t count, std::int64_t height = 28,
                  std::int64_t width = 42) {
  torch::manual_seed(4);
  return torch::rand({scenes, count, 3, height, width});
}

TEST(Vggt, tokens_of_all_frames_have_both_widths) {
  const auto model = random_vggt();
  const auto tokens = model.tokens(frames(2, 3), FrameSight::all, 3);
  EXPECT_EQ(tokens.sizes(), at::IntArrayRef({2, 3, 5 + 6, 128}));
  EXPECT_FALSE(tokens.requires_grad());
  const auto newest = model.newest(frames(2, 3), FrameSight::all);
  EXPECT_TRUE(
      newest.equal(model.tokens(frames(2, 3), FrameSight::all, 2).select(1, 2).narrow(1, 5, 6)));
}

TEST(Vggt, scenes_do_not_see_each_other) {
  const auto model = random_vggt();
  const auto both = frames(2, 2);
  for (const auto sight : {FrameSight::all, FrameSight::earlier}) {
    const auto whole = model.tokens(both, sight, 3);
    for (std::int64_t scene = 0; scene < 2; ++scene)
      EXPECT_TRUE(whole.narrow(0, scene, 1)
                      .allclose(model.tokens(both.narrow(0, scene, 1), sight, 3), 1e-4, 1e-5));
  }
}

/// As if frames had come one by one.
TEST(Vggt, a_frame_that_sees_earlier_ones_alone_is_not_changed_by_later_ones) {
  const auto model = random_vggt();
  const auto all = frames(1, 4);
  const auto whole = model.tokens(all, FrameSight::earlier, 3);
  for (std::int64_t count = 1; count <= 4; ++count) {
    const auto begin = model.tokens(all.narrow(1, 0, count), FrameSight::earlier, 3);
    EXPECT_TRUE(whole.narrow(1, 0, count).allclose(begin, 1e-4, 1e-5)) << count;
  }
  EXPECT_FALSE(model.tokens(all, FrameSight::all, 3).allclose(whole, 1e-3, 1e-3));
}

TEST(Vggt, a_single_frame_sees_itself_either_way) {
  const auto model = random_vggt();
  EXPECT_TRUE(model.newest(frames(1, 1), FrameSight::all)
                  .equal(model.newest(frames(1, 1), FrameSight::earlier)));
}

/// Only the first has a camera of its own.
TEST(Vggt, the_first_frame_is_not_like_the_others) {
  const auto model = random_vggt();
  const auto one = frames(1, 1);
  const auto tokens = model.tokens(one.repeat({1, 3, 1, 1, 1}), FrameSight::all, 1);
  EXPECT_TRUE(tokens.select(1, 1).allclose(tokens.select(1, 2), 1e-4, 1e-5));
  EXPECT_FALSE(tokens.select(1, 0).allclose(tokens.select(1, 1), 1e-2, 1e-2));
}

TEST(Vggt, frames_of_the_positions_own_square_need_no_resizing) {
  const auto model = random_vggt();
  EXPECT_EQ(model.newest(frames(1, 2, 28, 28), FrameSight::all).sizes(),
            at::IntArrayRef({1, 4, 128}));
}

TEST(Vggt, bfloat16_is_near) {
  const auto exact = random_vggt().newest(frames(1, 2), FrameSight::all);
  const auto rough =
      random_vggt({.precision = Precision::bf16}).newest(frames(1, 2), FrameSight::all);
  EXPECT_LT((exact - rough).norm().item<double>() / exact.norm().item<double>(), 0.05);
}

/// What the newest of each scene becomes, as SceneFeatures asks for it; also of no scenes.
std::vector<at::Tensor> looked_at(const Vggt& model, const std::vector<at::Tensor>& images) {
  std::vector<VggtScenes> scenes;
  for (const auto& patches : model.patches(images))
    scenes.push_back({.patches = patches.unsqueeze(0), .rows = 2});
  return model.newest_of(scenes, FrameSight::earlier);
}

/// Rank 0 has nothing to look at, and the others have scenes of different numbers.
TEST(Vggt, shared_out_among_ranks_it_has_the_same_bits) {
  const auto weights = random_weights(vggt_tensors(kSmall).specs);
  const Vggt whole(weights, kSmall, {});
  const auto all = frames(4, 2);
  for (const int count : {2, 3}) {
    on_ranks(count, [&](Communicator& ranks) {
      const Vggt model(weights, kSmall, {}, &ranks);
      EXPECT_LT(model.held_bytes(), whole.held_bytes());
      std::vector<at::Tensor> images;
      for (int scene = 0; scene < ranks.rank(); ++scene) images.push_back(all[scene]);
      for (int pass = 0; pass < 2; ++pass) {
        const auto wanted = looked_at(whole, images), got = looked_at(model, images);
        ASSERT_EQ(got.size(), images.size());
        for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(wanted[i])) << i;
      }
      EXPECT_GT(ranks.volume().elements_sent, 0);
    });
  }
}

/// Of whoever gives it layer by layer a rank keeps no layer as a whole.
TEST(Vggt, shared_out_it_is_never_here_as_a_whole) {
  const auto specs = vggt_tensors(kSmall).specs;
  on_ranks(2, [&](Communicator& ranks) {
    std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> given;
    const auto there = [&] {
      return std::ranges::count_if(given, [](const auto& one) { return !one.expired(); });
    };
    std::int64_t most = 0;
    const Vggt model(
        [&](std::size_t index) {
          auto weight = torch::ones(specs[index].shape);
          given.emplace_back(weight.getIntrusivePtr());
          most = std::max<std::int64_t>(most, there());
          return weight;
        },
        kSmall, {}, &ranks);
    EXPECT_EQ(given.size(), specs.size());
    const auto of_no_layer = there();
    EXPECT_LT(of_no_layer, 20);
    EXPECT_LE(most, of_no_layer + static_cast<std::int64_t>(kTensorsOfVggtLayer));
  });
}

}  // namespace
}  // namespace tj::trainer
