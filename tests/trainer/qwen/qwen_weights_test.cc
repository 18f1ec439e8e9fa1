#include "trainer/workloads/qwen_vggt/qwen_weights.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <fstream>
#include <functional>

#include "tests/temporary_folder.h"
#include "tests/trainer/qwen/conversations.h"
#include "trainer/process/durable_file.h"
#include "trainer/workload/read_weights.h"
#include "trainer/workloads/qwen_vggt/qwen_json.h"
#include "trainer/workloads/qwen_vggt/vggt_weights.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

/// Tensors by name, as a file holds them.
using Named = std::map<std::string, at::Tensor>;

const QwenConfig kNano = qwen_named("qwen-nano");
const VggtConfig kSmallVggt{.width = 32,
                            .hidden = 64,
                            .heads = 2,
                            .layers = 2,
                            .dino_layers = 1,
                            .patch_side = 14,
                            .positions_side = 3,
                            .registers = 2};

Named named(const std::vector<TensorSpec>& specs) {
  const auto weights = random_weights(specs);
  Named all;
  for (std::size_t i = 0; i < specs.size(); ++i) all[specs[i].name] = weights[i].detach();
  return all;
}

void write(const fs::path& path, const Named& all) {
  std::vector<TensorBytes> tensors;
  for (const auto& [name, tensor] : all)
    tensors.push_back({.name = name,
                       .shape = tensor.sizes().vec(),
                       .bytes = {static_cast<const std::byte*>(tensor.data_ptr()),
                                 static_cast<std::size_t>(tensor.nbytes())}});
  const auto written = write_safetensors(path, tensors, {});
  ASSERT_TRUE(written) << describe(written.error());
}

Named renamed(const Named& all, const std::function<std::string(const std::string&)>& name_of) {
  Named result;
  for (const auto& [name, tensor] : all) result[name_of(name)] = tensor;
  return result;
}

std::string newer_name(const std::string& name) {
  if (name.starts_with("visual.")) return "model." + name;
  return name.starts_with("model.") ? "model.language_model." + name.substr(6) : name;
}

void expect_read(const fs::path& path, const std::vector<TensorSpec>& specs, const Named& wanted) {
  const auto reader = open_qwen_weights(path, specs);
  ASSERT_TRUE(reader) << describe(reader.error());
  const auto read = read_weights(*reader, specs, {});
  ASSERT_TRUE(read) << describe(read.error());
  for (std::size_t i = 0; i < specs.size(); ++i)
    EXPECT_TRUE((*read)[i].equal(wanted.at(specs[i].name))) << specs[i].name;
}

TEST(QwenWeights, files_of_old_and_new_names_are_read) {
  const TemporaryFolder folder;
  const auto specs = qwen_tensors(kNano).specs;
  const auto all = named(specs);
  write(folder.path() / "model.safetensors", all);
  expect_read(folder.path(), specs, all);
  write(folder.path() / "new.safetensors", renamed(all, newer_name));
  expect_read(folder.path() / "new.safetensors", specs, all);
}

TEST(QwenWeights, a_tied_head_is_passed_over_or_is_the_embedding) {
  const TemporaryFolder folder;
  const auto specs = qwen_tensors(kNano).specs;
  const auto all = named(specs);
  auto other = all;
  other["lm_head.weight"] = torch::zeros({512, 64});
  write(folder.path() / "a.safetensors", other);
  expect_read(folder.path() / "a.safetensors", specs, all);
  other["lm_head.weight"] = all.at("model.embed_tokens.weight");
  other.erase("model.embed_tokens.weight");
  write(folder.path() / "b.safetensors", other);
  expect_read(folder.path() / "b.safetensors", specs, all);
}

TEST(QwenWeights, what_does_not_fit_is_named) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const auto specs = qwen_tensors(kNano).specs;
  const auto failure = [&](const Named& all) {
    write(path, all);
    const auto reader = open_qwen_weights(path, specs);
    return reader ? "it was read" : describe(reader.error());
  };
  const auto all = named(specs);
  auto other = all;
  other.erase("visual.merger.mlp.0.bias");
  EXPECT_NE(failure(other).find("has no tensor visual.merger.mlp.0.bias"), std::string::npos);
  other = all;
  other["model.norm.weight"] = torch::zeros({5});
  EXPECT_NE(failure(other).find("model.norm.weight is [5], and by config.json it is [64]"),
            std::string::npos)
      << failure(other);
  other = all;
  other["other.something"] = torch::zeros({5});
  EXPECT_NE(failure(other).find("other.something is none of this model's"), std::string::npos);
  other = all;
  other["model.visual.merger.ln_q.weight"] = torch::zeros({32});
  EXPECT_NE(failure(other).find("there twice"), std::string::npos);
  const auto nowhere = open_qwen_weights(folder.path() / "none", specs);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(describe(nowhere.error()).find("does not exist"), std::string::npos);
  const auto empty = open_qwen_weights(folder.path(), specs);
  ASSERT_FALSE(empty);
  EXPECT_NE(describe(empty.error()).find("holds neither"), std::string::npos);
}

TEST(QwenWeights, a_missing_shard_is_named) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "model.safetensors.index.json")
      << R"({"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}})";
  const auto reader = open_qwen_weights(folder.path(), qwen_tensors(kNano).specs);
  ASSERT_FALSE(reader);
  EXPECT_NE(describe(reader.error()).find("model-00001-of-00002.safetensors"), std::string::npos)
      << describe(reader.error());
}

TEST(QwenWeights, the_shape_is_that_of_the_folders_config) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_durably(folder.path() / "config.json", qwen_config_json(kNano)));
  const auto config = read_qwen_config(folder.path());
  ASSERT_TRUE(config) << describe(config.error());
  EXPECT_EQ(*config, kNano);
  EXPECT_FALSE(read_qwen_config(folder.path() / "none"));
}

TEST(VggtWeights, heads_are_passed_over_and_sizes_follow_from_the_tensors) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.safetensors";
  auto all = named(vggt_tensors(kSmallVggt).specs);
  all["aggregator.patch_embed.mask_token"] = torch::zeros({1, 32});
  all["camera_head.token_norm.weight"] = torch::zeros({64});
  all["depth_head.norm.weight"] = torch::zeros({64});
  write(path, all);
  const auto config = read_vggt_config(folder.path());
  ASSERT_TRUE(config) << describe(config.error());
  EXPECT_EQ(*config, kSmallVggt);
  const auto model = open_vggt(path, {});
  ASSERT_TRUE(model) << describe(model.error());
  EXPECT_EQ((*model)->config(), kSmallVggt);
}

TEST(VggtWeights, what_does_not_fit_is_named) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  const auto failure = [&](const Named& all) {
    write(path, all);
    const auto model = open_vggt(path, {});
    return model ? "it was read" : describe(model.error());
  };
  const auto all = named(vggt_tensors(kSmallVggt).specs);
  auto other = all;
  other.erase("aggregator.register_token");
  EXPECT_NE(failure(other).find("has no tensor aggregator.register_token; is this a VGGT?"),
            std::string::npos);
  other = all;
  other.erase("aggregator.global_blocks.1.attn.proj.bias");
  EXPECT_NE(failure(other).find("has no tensor aggregator.global_blocks.1.attn.proj.bias"),
            std::string::npos);
  other = all;
  other["aggregator.camera_token"] = torch::zeros({1, 2, 1, 33});
  EXPECT_NE(failure(other).find("aggregator.camera_token is [1, 2, 1, 33], and by the other"),
            std::string::npos)
      << failure(other);
  other = all;
  other["aggregator.patch_embed.pos_embed"] = torch::zeros({10, 32});
  EXPECT_NE(failure(other).find("it must have 3 extents"), std::string::npos);
  other = all;
  other["more"] = torch::zeros({1});
  EXPECT_NE(failure(other).find("more is none of VGGT's"), std::string::npos);
}

}  // namespace
}  // namespace tj::trainer
