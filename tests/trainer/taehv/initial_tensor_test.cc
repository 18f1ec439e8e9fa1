// What a convolution does before the first step that is to pass its input on. Noise of no size
// shows it.
#include "trainer/workload/initial_tensor.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace tj::trainer {
namespace {

at::Tensor weight_of(std::int64_t out, std::int64_t in, std::int64_t repeats = 1) {
  const TensorSpec spec{.name = "w",
                        .shape = {out, in, 3, 3},
                        .init = {.kind = TensorInit::Kind::dirac, .scale = 0, .repeats = repeats},
                        .kind = TensorKind::frozen};
  return initial_tensors(std::vector{spec}, {}, {})[0];
}

bool same(const at::Tensor& made, const at::Tensor& wanted) { return at::allclose(made, wanted); }

TEST(InitialTensor, a_convolution_that_only_resamples_passes_its_input_on) {
  const auto x = torch::rand({1, 4, 5, 5});
  EXPECT_TRUE(same(at::conv2d(x, weight_of(4, 4), {}, 1, 1), x));
  EXPECT_TRUE(same(at::conv2d(x, weight_of(8, 4), {}, 1, 1), at::cat({x, x}, 1)));
  EXPECT_TRUE(
      same(at::conv2d(x, weight_of(2, 4), {}, 1, 1), (x.slice(1, 0, 2) + x.slice(1, 2, 4)) / 2));
  // Of each channel by itself.
  EXPECT_TRUE(same(at::conv2d(x, weight_of(4, 1), {}, 1, 1, 1, /*groups=*/4), x));
}

TEST(InitialTensor, a_pixel_shuffle_makes_a_larger_picture_of_what_is_repeated) {
  const auto x = torch::rand({1, 4, 5, 5});
  const auto made = at::pixel_shuffle(at::conv2d(x, weight_of(16, 4, /*repeats=*/4), {}, 1, 1), 2);
  EXPECT_TRUE(same(made, x.repeat_interleave(2, 2).repeat_interleave(2, 3)));
}

}  // namespace
}  // namespace tj::trainer
