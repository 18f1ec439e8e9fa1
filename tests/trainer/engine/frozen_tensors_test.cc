#include "trainer/workload/frozen_tensors.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

using enum TensorKind;

std::vector<TensorSpec> model() {
  return {{.name = "encoder.weight", .shape = {4, 4}},
          {.name = "encoder.mean", .shape = {4}, .kind = buffer},
          {.name = "teacher.weight", .shape = {4, 4}, .kind = frozen},
          {.name = "head.weight", .shape = {4, 2}},
          {.name = "head.bias", .shape = {2}}};
}

/// Of each tensor, or the error.
std::string kinds_with(const std::vector<std::string>& patterns) {
  const auto tensors = frozen_by(patterns, model(), "--freeze");
  if (!tensors) return describe(tensors.error());
  std::string kinds;
  for (const auto& tensor : *tensors)
    kinds += tensor.kind == trained ? 't' : tensor.kind == frozen ? 'f' : 'b';
  return kinds;
}

TEST(FrozenTensors, patterns_freeze_what_is_trained_and_nothing_else) {
  struct Case {
    std::vector<std::string> patterns;
    const char* kinds;
  };
  const Case cases[] = {{{}, "tbftt"},
                        {{"encoder.*"}, "fbftt"},
                        {{"*.weight"}, "fbfft"},
                        {{"head.bias", "enc*"}, "fbftf"},
                        {{"*.weight", "head.*"}, "--freeze: leaves nothing to train of 3 tensors"}};
  for (const auto& [patterns, kinds] : cases) EXPECT_EQ(kinds_with(patterns), kinds);
}

TEST(FrozenTensors, a_pattern_without_a_trained_tensor_is_refused_with_names_near_it) {
  const std::string rule = "it must match the name of a trained tensor, such as ";
  EXPECT_EQ(kinds_with({"haed.*"}),
            "--freeze: is \"haed.*\"; " + rule + "head.weight, head.bias or encoder.weight");
  EXPECT_EQ(kinds_with({"teacher.*"}).find("--freeze: is \"teacher.*\"; " + rule), 0U);
  EXPECT_EQ(kinds_with({"head.bias", "encoder.mean"}).find("--freeze: is \"encoder.mean\"; "), 0U);
}

}  // namespace
}  // namespace tj::trainer
