#include "trainer/checkpoint/file_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace tj::trainer {
namespace {

StateGroup group(const std::string& stem, const std::vector<std::int64_t>& sizes) {
  StateGroup made{.stem = stem, .tensors = {}};
  for (std::size_t index = 0; index < sizes.size(); ++index)
    made.tensors.push_back(
        {.name = stem + "." + std::to_string(index), .shape = {sizes[index]}, .copy_to = {}});
  return made;
}

std::vector<std::string> names_of(std::span<const PlannedFile> files) {
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.name);
  return names;
}

TEST(FilePlan, one_writer_has_one_file_for_each_group) {
  const StateGroup groups[] = {group("model", {3, 1}), group("optimizer", {3, 1})};
  const auto plan = plan_files(groups, 1);
  EXPECT_EQ(names_of(plan),
            (std::vector<std::string>{"model.safetensors", "optimizer.safetensors"}));
  EXPECT_EQ(plan[0].tensors, (std::vector<std::size_t>{0, 1}));
}

TEST(FilePlan, every_tensor_is_in_exactly_one_file_whatever_the_number_of_writers) {
  const StateGroup groups[] = {group("model", {50, 7, 3, 3, 1, 20}),
                               group("optimizer", {50, 50, 7, 7})};
  for (int writers = 1; writers <= 12; ++writers) {
    std::set<std::pair<std::size_t, std::size_t>> seen;
    for (const auto& file : plan_files(groups, writers)) {
      EXPECT_LT(file.writer, writers);
      EXPECT_FALSE(file.tensors.empty());
      EXPECT_TRUE(std::ranges::is_sorted(file.tensors));
      for (const auto tensor : file.tensors)
        EXPECT_TRUE(seen.emplace(file.group, tensor).second) << writers;
    }
    EXPECT_EQ(seen.size(), 10U) << writers;
  }
}

TEST(FilePlan, bytes_are_spread_evenly_over_all_groups_together) {
  const StateGroup groups[] = {group("model", {40, 10, 10}),
                               group("optimizer", {40, 40, 10, 10, 10, 10})};
  std::vector<std::int64_t> loads(2);
  for (const auto& file : plan_files(groups, 2)) {
    for (const auto tensor : file.tensors)
      loads[static_cast<std::size_t>(file.writer)] += groups[file.group].tensors[tensor].shape[0];
  }
  EXPECT_EQ(loads[0], 90);
  EXPECT_EQ(loads[1], 90);
}

TEST(FilePlan, what_one_rank_alone_has_that_rank_writes_and_the_rest_makes_up_for_it) {
  StateGroup groups[] = {group("optimizer", {40, 10, 10}), group("ema", {30, 5, 5})};
  for (auto& tensor : groups[0].tensors) tensor.holder = 1;
  groups[0].tensors[2].holder = 0;
  std::vector<std::int64_t> loads(2);
  for (const auto& file : plan_files(groups, 2)) {
    for (const auto index : file.tensors) {
      const auto& tensor = groups[file.group].tensors[index];
      EXPECT_EQ(tensor.holder.value_or(file.writer), file.writer) << tensor.name;
      loads[static_cast<std::size_t>(file.writer)] += tensor.shape[0];
    }
  }
  EXPECT_EQ(loads, (std::vector<std::int64_t>{50, 50}));
}

TEST(FilePlan, files_are_numbered_from_one_and_only_those_that_are_there) {
  const StateGroup groups[] = {group("model", {4, 2})};
  EXPECT_EQ(names_of(plan_files(groups, 4)),
            (std::vector<std::string>{"model-00001-of-00002.safetensors",
                                      "model-00002-of-00002.safetensors"}));
}

TEST(FilePlan, the_index_is_the_one_that_hugging_face_reads) {
  const StateGroup groups[] = {group("model", {4, 2})};
  const auto plan = plan_files(groups, 2);
  EXPECT_EQ(index_name("model"), "model.safetensors.index.json");
  EXPECT_EQ(nlohmann::json::parse(index_text(groups, 0, plan)),
            nlohmann::json::parse(R"({"metadata": {"total_size": 24},
              "weight_map": {"model.0": "model-00001-of-00002.safetensors",
                             "model.1": "model-00002-of-00002.safetensors"}})"));
}

}  // namespace
}  // namespace tj::trainer
