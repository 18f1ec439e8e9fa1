#include "trainer/workloads/qwen_vggt/geometry.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/trainer/qwen/conversations.h"

namespace tj::trainer {
namespace {

const QwenConfig kNano = qwen_named("qwen-nano");
const GeometryConfig kSmall{.features = 16, .hidden = 24, .width = kNano.text.width};

TEST(Geometry, names_and_shapes_are_those_of_the_facts) {
  const auto specs = geometry_tensors({});
  ASSERT_EQ(specs.size(), kTensorsOfGeometry);
  EXPECT_EQ(specs[1].name, "merger.mlp.0.weight");
  EXPECT_EQ(specs[1].shape, (std::vector<std::int64_t>{4096, 8192}));
  EXPECT_EQ(specs[3].shape, (std::vector<std::int64_t>{2048, 4096}));
}

/// Features that say where their patch stands; a norm's weight of one leaves their order.
TEST(Geometry, patches_are_grouped_as_qwens_own) {
  const VisionGrid grid{.rows = 4, .columns = 6};
  const auto places = patch_places(grid, 2);
  torch::manual_seed(1);
  const auto features = torch::randn({24, kSmall.features});
  const auto tensors = random_weights(geometry_tensors(kSmall));
  const at::NoGradGuard no_gradients;
  const auto tokens = geometry_tokens(features, grid, tensors, kSmall);
  ASSERT_EQ(tokens.sizes(), at::IntArrayRef({6, kSmall.width}));
  for (std::int64_t token = 0; token < 6; ++token) {
    std::vector<at::Tensor> own;
    for (std::int64_t patch = 4 * token; patch < 4 * token + 4; ++patch) {
      const auto& place = places[static_cast<std::size_t>(patch)];
      own.push_back(features[place.row * grid.columns + place.column]);
    }
    const VisionGrid one{.rows = 2, .columns = 2};
    EXPECT_TRUE(geometry_tokens(at::stack(own), one, tensors, kSmall)[0].allclose(tokens[token],
                                                                                  1e-4, 1e-5))
        << token;
  }
}

TEST(Geometry, rows_and_columns_that_fill_no_token_are_left_out) {
  torch::manual_seed(1);
  const auto features = torch::randn({5 * 3, kSmall.features});
  const auto tensors = random_weights(geometry_tensors(kSmall));
  const at::NoGradGuard no_gradients;
  const VisionGrid odd{.rows = 5, .columns = 3};
  const auto cut = features.view({5, 3, -1}).narrow(0, 0, 4).narrow(1, 0, 2).reshape({8, -1});
  EXPECT_TRUE(geometry_tokens(features, odd, tensors, kSmall)
                  .equal(geometry_tokens(cut, {.rows = 4, .columns = 2}, tensors, kSmall)));
}

/// The gradient comes through the pictures' tokens, and with no weight nothing changes.
TEST(Geometry, it_is_added_to_each_picture_and_learns) {
  torch::manual_seed(3);
  const auto model = random_qwen(kNano);
  const auto tensors = random_weights(geometry_tensors(kSmall));
  const VisionInput picture{.grid = kSquare};
  const auto batch = batch_of(kNano, {made_up(kNano, {picture, picture}, 8)});
  const auto features = torch::randn({kSquare.patches(), kSmall.features});
  const auto plain = model.pictures(batch);
  const auto tokens = geometry_tokens(features, kSquare, tensors, kSmall);
  const auto coupled = with_geometry(plain, tokens, kSmall);
  const auto added = (coupled - plain).view({2, 4, -1});
  EXPECT_TRUE(added[0].allclose(0.2 * tokens, 1e-4, 1e-5));
  EXPECT_TRUE(added[1].allclose(added[0], 1e-4, 1e-5));
  auto none = kSmall;
  none.weight = 0;
  EXPECT_TRUE(with_geometry(plain, tokens, none).equal(plain));
  model.loss(batch, coupled).backward();
  for (const auto& tensor : tensors) {
    ASSERT_TRUE(tensor.grad().defined());
    EXPECT_GT(tensor.grad().abs().max().item<double>(), 0);
  }
}

}  // namespace
}  // namespace tj::trainer
