#include "trainer/checkpoint/adapter_export.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/values/adapter_names.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

const std::vector<float> kValues{1, 2, 3, 4, 5, 6, 7, 8};
using Shape = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

TensorBytes tensor(const std::string& name, const Shape& shape) {
  const auto count = static_cast<std::size_t>(element_count(shape));
  return {.name = name, .shape = shape, .bytes = std::as_bytes(std::span(kValues).first(count))};
}

/// A checkpoint of a model with the matrices q [2, 4] and p [4, 2] and a norm, of which q has
/// adapters.
class AdapterExport : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::vector<TensorBytes>& tensors) {
    const auto digest = write_safetensors(source_ / file, tensors, {});
    ASSERT_TRUE(digest);
    manifest_.files[file] = *digest;
  }
  void make_checkpoint(const ModelShape& shape) {
    write("model.safetensors", {tensor("h.ln.bias", {2}), tensor("h.ln.weight", {2}),
                                tensor("h.p.weight", {4, 2}), tensor("h.q.weight", {2, 4})});
    if (!manifest_.files.contains("training.safetensors"))
      write("training.safetensors", {tensor("base_model.model.h.q.base_layer.weight", {2, 4}),
                                     tensor("base_model.model.h.q.lora_A.weight", {1, 4}),
                                     tensor("base_model.model.h.q.lora_B.weight", {2, 1})});
    if (!manifest_.files.contains("optimizer.safetensors"))
      write("optimizer.safetensors",
            {tensor("exp_avg.base_model.model.h.q.lora_A.weight", {1, 4})});
    manifest_.model = shape;
    manifest_.step = 7;
    folder_.write("out/step-000007/manifest.json", manifest_text(manifest_));
  }
  Result<AdapterEnd> run(const std::string& prefix = "") {
    return export_adapter(
        {.from = source_.parent_path(), .to = folder_.path() / "to", .module_prefix = prefix});
  }
  std::string failure() {
    const auto end = run();
    return end ? "" : describe(end.error());
  }
  nlohmann::json config() {
    return nlohmann::json::parse(
        *read_small_file(folder_.path() / "to/adapter_config.json", 1 << 16));
  }
  Names exported() {
    Names names;
    const auto catalog = TensorCatalog::open_file(folder_.path() / "to/adapter_model.safetensors");
    for (const auto& [name, stored] : catalog->tensors()) names.push_back(name);
    return names;
  }

  TemporaryFolder folder_;
  fs::path source_ = folder_.write("out/step-000007/.keep", "").parent_path();
  Manifest manifest_;
};

const ModelShape kRankOne{{kLoraRankKey, "", 1}, {kLoraAlphaKey, "", 8}};

TEST_F(AdapterExport, what_can_not_be_written_is_named_as_it_would_have_been) {
  make_checkpoint(kRankOne);
  const auto draft = ".adapter_model.safetensors.draft-" + std::to_string(::getpid());
  folder_.write("to/" + draft + "/in_the_way", "");
  EXPECT_EQ(failure(), (folder_.path() / "to/adapter_model.safetensors").string() +
                           ": can't be created: Is a directory");
}

TEST_F(AdapterExport, the_newest_checkpoint_becomes_what_peft_loads) {
  make_checkpoint(kRankOne);
  const auto end = run();
  ASSERT_TRUE(end) << describe(end.error());
  EXPECT_EQ(std::tuple(end->step, end->rank, end->adapted, end->whole), std::tuple(7, 1, 1U, 0U));
  EXPECT_EQ(exported(),
            (Names{"base_model.model.h.q.lora_A.weight", "base_model.model.h.q.lora_B.weight"}));
  const auto said = config();
  EXPECT_EQ(said["peft_type"], "LORA");
  EXPECT_EQ(said["r"], 1);
  EXPECT_EQ(said["lora_alpha"], 8);
  EXPECT_EQ(said["fan_in_fan_out"], false);
  EXPECT_EQ(said["target_modules"], (Names{"h.q"}));
  EXPECT_TRUE(said["modules_to_save"].is_null());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path() / "to"), {}), 2);
}

TEST_F(AdapterExport, what_was_trained_as_a_whole_goes_with_its_module_and_names_get_a_prefix) {
  write("optimizer.safetensors", {tensor("exp_avg.base_model.model.h.q.lora_A.weight", {1, 4}),
                                  tensor("exp_avg.h.ln.weight", {2})});
  auto shape = kRankOne;
  shape.push_back({kLoraTransposedKey, "", 1});
  make_checkpoint(shape);
  const auto end = run("model.");
  ASSERT_TRUE(end) << describe(end.error());
  EXPECT_EQ(exported(),
            (Names{"base_model.model.model.h.ln.bias", "base_model.model.model.h.ln.weight",
                   "base_model.model.model.h.q.lora_A.weight",
                   "base_model.model.model.h.q.lora_B.weight"}));
  EXPECT_EQ(config()["modules_to_save"], (Names{"model.h.ln"}));
  EXPECT_EQ(config()["target_modules"], (Names{"model.h.q"}));
  EXPECT_EQ(config()["fan_in_fan_out"], true);
}

TEST_F(AdapterExport, what_peft_has_no_words_for_is_named_and_leaves_no_file) {
  EXPECT_NE(failure().find("out: has no checkpoint that can be used"), std::string::npos);
  make_checkpoint({});
  EXPECT_NE(failure().find("has no adapters; trainer train --lora makes them"), std::string::npos);
  make_checkpoint({{kLoraRankKey, "", 2}});
  EXPECT_NE(failure().find("h.q: has adapters [1, 4] and [2, 1], which are not of rank 2"),
            std::string::npos);
  write("optimizer.safetensors", {tensor("exp_avg.h.q.weight", {2, 4})});
  make_checkpoint(kRankOne);
  EXPECT_NE(failure().find("h.q.weight: was trained as a whole, and PEFT's files hold whole "),
            std::string::npos);
  write("training.safetensors", {tensor("base_model.model.wte.lora_embedding_A.weight", {1, 4}),
                                 tensor("base_model.model.wte.lora_embedding_B.weight", {2, 1})});
  make_checkpoint(kRankOne);
  EXPECT_NE(failure().find("wte: is a table whose rows are looked up"), std::string::npos);
  folder_.write("out/step-000007/training.safetensors", "cut");
  EXPECT_NE(failure().find("training.safetensors: is "), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_.path() / "to"));
}

}  // namespace
}  // namespace tj::trainer
