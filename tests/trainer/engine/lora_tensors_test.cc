#include "trainer/workload/lora_tensors.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

std::vector<TensorSpec> model() {
  return {{.name = "wte.weight", .shape = {8, 4}},
          {.name = "h.0.q.weight", .shape = {4, 6}},
          {.name = "h.0.q.bias", .shape = {6}},
          {.name = "teacher.weight", .shape = {4, 4}, .kind = TensorKind::frozen},
          {.name = "h.1.q.weight", .shape = {4, 6}}};
}

std::string kinds_of(const std::vector<TensorSpec>& tensors) {
  std::string kinds;
  for (const auto& tensor : tensors) kinds += tensor.kind == TensorKind::trained ? 't' : 'f';
  return kinds;
}

TEST(LoraTensors, adapters_come_after_the_model_which_is_frozen) {
  const auto tuned = with_lora({.rank = 2, .alpha = 4, .targets = {"h.*"}}, model());
  ASSERT_TRUE(tuned) << describe(tuned.error());
  EXPECT_EQ(tuned->targets, (std::vector<LoraTarget>{{1, 5, 6, 7}, {4, 8, 9, 10}}));
  const auto& tensors = tuned->tensors;
  EXPECT_EQ(kinds_of(tensors),
            "fffff"
            "ftt"
            "ftt");
  EXPECT_EQ(tensors[5].name, "base_model.model.h.0.q.base_layer.weight");
  EXPECT_EQ(tensors[6].name, "base_model.model.h.0.q.lora_A.weight");
  EXPECT_EQ(tensors[7].name, "base_model.model.h.0.q.lora_B.weight");
  EXPECT_EQ(tensors[5].shape, (std::vector<std::int64_t>{4, 6}));
  EXPECT_EQ(tensors[6].shape, (std::vector<std::int64_t>{2, 6}));
  EXPECT_EQ(tensors[7].shape, (std::vector<std::int64_t>{4, 2}));
  for (std::size_t i = 0; i < tensors.size(); ++i) EXPECT_EQ(tensors[i].is_published, i < 5) << i;
  EXPECT_EQ(tensors[7].init, TensorInit{}) << "zeros: nothing has changed yet";
}

TEST(LoraTensors, adapters_have_the_shapes_of_peft_whichever_way_the_matrix_lies) {
  const auto tuned =
      with_lora({.rank = 2, .alpha = 4, .targets = {"*"}},
                {{.name = "c.weight", .shape = {4, 6}, .layout = MatrixLayout::inputs_outputs},
                 {.name = "e.weight", .shape = {8, 4}, .layout = MatrixLayout::rows}});
  ASSERT_TRUE(tuned);
  EXPECT_TRUE(tuned->targets[0].is_transposed);
  EXPECT_EQ(tuned->tensors[3].name, "base_model.model.c.lora_A.weight");
  EXPECT_EQ(tuned->tensors[3].shape, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(tuned->tensors[3].init.scale, 0.5) << "of 4 inputs";
  EXPECT_EQ(tuned->tensors[4].shape, (std::vector<std::int64_t>{6, 2}));
  EXPECT_FALSE(tuned->targets[1].is_transposed);
  EXPECT_EQ(tuned->tensors[6].name, "base_model.model.e.lora_embedding_A.weight");
  EXPECT_EQ(tuned->tensors[7].name, "base_model.model.e.lora_embedding_B.weight");
}

TEST(LoraTensors, others_may_be_trained_as_a_whole_beside_them) {
  const auto tuned =
      with_lora({.rank = 1, .alpha = 1, .targets = {"h.1.q.weight"}, .also = {"*.q.*"}}, model());
  ASSERT_TRUE(tuned);
  EXPECT_EQ(kinds_of(tuned->tensors),
            "fttff"
            "ftt")
      << "a target is none of them";
}

TEST(LoraTensors, what_matches_nothing_is_named) {
  const auto error_of = [](const LoraOptions& options) {
    const auto tuned = with_lora(options, model());
    return tuned ? std::string() : describe(tuned.error());
  };
  EXPECT_EQ(error_of({.rank = 1, .alpha = 1, .targets = {"*.q.bias"}}),
            "--lora-targets: is \"*.q.bias\"; it must match the name of a trained matrix, such as "
            "h.0.q.weight, h.1.q.weight or wte.weight");
  EXPECT_EQ(error_of({.rank = 1, .alpha = 1, .targets = {"h.*"}, .also = {"teacher.*"}})
                .find("--lora-also: is \"teacher.*\"; it must match the name of a trained tensor, "
                      "such as "),
            0U);
  const auto vectors =
      with_lora({.rank = 1, .alpha = 1, .targets = {"*"}}, {{.name = "b", .shape = {4}}});
  ASSERT_FALSE(vectors);
  EXPECT_EQ(describe(vectors.error()),
            "--lora-targets: is \"*\"; it must match the name of a trained matrix, and this model "
            "has none");
}

TEST(LoraTensors, adapters_are_in_the_first_block_of_their_matrix) {
  const LoraTarget targets[] = {{1, 5, 6, 7}, {0, 8, 9, 10}};
  const auto blocks = with_lora(
      targets,
      {{.tensors = {0}, .reads_in_backward = false}, {.tensors = {1, 2}}, {.tensors = {0, 3}}});
  EXPECT_EQ(blocks[0].tensors, (std::vector<std::size_t>{0, 9, 10}));
  EXPECT_TRUE(blocks[0].reads_in_backward) << "gradients of A and B need each other";
  EXPECT_EQ(blocks[1].tensors, (std::vector<std::size_t>{1, 2, 6, 7}));
  EXPECT_EQ(blocks[2].tensors, (std::vector<std::size_t>{0, 3}));
}

}  // namespace
}  // namespace tj::trainer
