#include "trainer/workloads/gpt2/hugging_face.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"
#include "trainer/checkpoint/manifest.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr Gpt2Config kModel{.layers = 2, .heads = 2, .width = 4, .context = 3, .vocabulary = 5};

struct Stored {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// A model folder whose tensors a test may change before write().
struct Folder {
  TemporaryFolder folder;
  std::map<std::string, Stored> tensors;
  nlohmann::json config = nlohmann::json::parse(gpt2_config_json(kModel));

  Folder() {
    float next = 0;
    for (const auto& spec : gpt2_tensors(kModel)) {
      const auto count = static_cast<std::size_t>(element_count(spec));
      Stored stored{.shape = spec.shape, .values = std::vector<float>(count)};
      for (auto& value : stored.values) value = next++;
      tensors[spec.name] = stored;
    }
  }

  void rename_all_without_prefix() {
    std::map<std::string, Stored> renamed;
    for (const auto& [name, stored] : tensors)
      renamed[name.substr(std::string("transformer.").size())] = stored;
    tensors = renamed;
  }

  fs::path write() {
    std::vector<TensorBytes> list;
    for (const auto& [name, stored] : tensors)
      list.push_back({name, stored.shape, std::as_bytes(std::span(stored.values))});
    EXPECT_TRUE(write_safetensors(folder.path() / "model.safetensors", list, {{"format", "pt"}}));
    if (!config.empty()) folder.write("config.json", config.dump());
    return folder.path();
  }
};

/// Reads all weights of a kModel; the error, or "" and the sum of all numbers.
std::pair<std::string, double> read_all(const fs::path& path) {
  std::vector<std::vector<float>> memory;
  std::vector<TensorTarget> targets;
  std::vector<std::string> names;
  for (const auto& spec : gpt2_tensors(kModel)) {
    const auto count = static_cast<std::size_t>(element_count(spec));
    memory.emplace_back(count);
    targets.push_back({.name = spec.name, .shape = spec.shape, .floats = memory.back()});
    names.push_back(spec.name);
  }
  const auto reader = open_initial_weights(path, names);
  Result<void> read = reader ? Result<void>() : Result<void>(reader.error());
  for (std::size_t index = 0; read && index < targets.size(); ++index)
    read = (*reader)(targets[index]);
  double sum = 0;
  for (const auto& floats : memory) {
    for (const float value : floats) sum += value;
  }
  return {read ? "" : describe(read.error()), sum};
}

double sum_of_example() {
  const auto count = static_cast<double>(parameter_count(kModel));
  return count * (count - 1) / 2;
}

TEST(InitialModel, has_the_shape_of_the_weights_and_the_heads_of_the_config) {
  Folder folder;
  const auto read = read_initial_model(folder.write());
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(read->model, kModel);
}

TEST(InitialModel, a_file_without_a_config_does_not_know_its_heads) {
  Folder folder;
  folder.config = {};
  const auto read = read_initial_model(folder.write() / "model.safetensors");
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(read->model.heads, 0);
  EXPECT_EQ(read->model.layers, 2);
}

TEST(InitialModel, names_with_and_without_the_prefix_are_the_same_weights) {
  Folder with, without;
  without.rename_all_without_prefix();
  EXPECT_EQ(read_all(with.write()), std::pair(std::string(), sum_of_example()));
  EXPECT_EQ(read_all(without.write()), std::pair(std::string(), sum_of_example()));
}

TEST(InitialModel, masks_are_skipped) {
  Folder folder;
  folder.tensors["transformer.h.0.attn.bias"] = {{1, 1, 2, 2}, {1, 0, 1, 1}};
  folder.tensors["transformer.h.1.attn.masked_bias"] = {{}, {-1e4F}};
  EXPECT_EQ(read_all(folder.write()), std::pair(std::string(), sum_of_example()));
}

TEST(InitialModel, a_tied_head_may_be_there_and_may_stand_for_the_embedding) {
  Folder folder;
  folder.tensors["lm_head.weight"] = folder.tensors["transformer.wte.weight"];
  EXPECT_EQ(read_all(folder.write()).first, "");
  folder.tensors.erase("transformer.wte.weight");
  EXPECT_EQ(read_all(folder.write()), std::pair(std::string(), sum_of_example()));
}

TEST(InitialModel, a_head_of_its_own_is_refused) {
  Folder folder;
  folder.tensors["lm_head.weight"] = folder.tensors["transformer.wte.weight"];
  folder.tensors["lm_head.weight"].values[3] += 1;
  EXPECT_EQ(read_all(folder.write()).first,
            "tensor lm_head.weight: differs from wte.weight; this model ties the two");
}

TEST(InitialModel, missing_surplus_and_misshapen_tensors_are_named) {
  Folder missing;
  missing.tensors.erase("transformer.h.1.ln_2.bias");
  EXPECT_EQ(read_all(missing.write()).first, "tensor transformer.h.1.ln_2.bias: is missing");
  Folder surplus;
  surplus.tensors["score.weight"] = {{1}, {1}};
  EXPECT_EQ(read_all(surplus.write()).first,
            "tensor transformer.score.weight: is none of this model's");
  Folder misshapen;
  misshapen.tensors["transformer.ln_f.bias"] = {{2}, {1, 2}};
  EXPECT_EQ(read_all(misshapen.write()).first,
            "tensor transformer.ln_f.bias: has the shape [2]; this model's is [4]");
}

TEST(InitialModel, a_config_that_contradicts_the_weights_is_refused_with_both_values) {
  Folder folder;
  folder.config["n_layer"] = 3;
  const auto path = folder.write();
  EXPECT_EQ(describe(read_initial_model(path).error()),
            (path / "config.json").string() + ": n_layer is 3; the weights have 2 layers");
}

TEST(InitialModel, the_form_of_gelu_is_that_of_the_config_there_and_back) {
  const std::pair<const char*, Gelu> cases[] = {
      {"gelu_new", Gelu::tanh}, {"gelu_pytorch_tanh", Gelu::tanh}, {"gelu", Gelu::erf}};
  for (const auto& [activation, gelu] : cases) {
    Folder folder;
    folder.config["activation_function"] = activation;
    const auto read = read_initial_model(folder.write());
    ASSERT_TRUE(read) << describe(read.error());
    EXPECT_EQ(read->model.gelu, gelu) << activation;
    const auto again = nlohmann::json::parse(gpt2_config_json(read->model));
    EXPECT_EQ(again["activation_function"], gelu == Gelu::erf ? "gelu" : "gelu_new");
  }
  Folder silent;
  silent.config.erase("activation_function");
  EXPECT_EQ(read_initial_model(silent.write())->model.gelu, Gelu::tanh);
}

TEST(InitialModel, a_padded_vocabulary_says_how_many_tokens_there_are) {
  EXPECT_FALSE(nlohmann::json::parse(gpt2_config_json(kModel)).contains("tokenizer_vocab_size"));
  Folder folder;
  folder.config = nlohmann::json::parse(gpt2_config_json(kModel, 4));
  EXPECT_EQ(folder.config["vocab_size"], 5);
  EXPECT_EQ(read_initial_model(folder.write())->tokenizer_vocabulary, 4);
  for (const std::int64_t wrong : {0, -1, 6}) {
    folder.config["tokenizer_vocab_size"] = wrong;
    const auto path = folder.write();
    EXPECT_EQ(describe(read_initial_model(path).error()),
              (path / "config.json").string() + ": tokenizer_vocab_size is " +
                  std::to_string(wrong) + "; it must be from 1 to vocab_size, 5");
  }
}

TEST(InitialModel, a_model_without_gpt2s_last_token_does_not_claim_it) {
  auto model = kModel;
  EXPECT_TRUE(nlohmann::json::parse(gpt2_config_json(model)).at("eos_token_id").is_null());
  model.vocabulary = 50257;
  EXPECT_FALSE(nlohmann::json::parse(gpt2_config_json(model)).contains("eos_token_id"));
}

TEST(InitialModel, what_we_do_not_compute_is_refused_with_both_values) {
  const std::pair<const char*, nlohmann::json> cases[] = {{"activation_function", "relu"},
                                                          {"layer_norm_epsilon", 1e-6},
                                                          {"tie_word_embeddings", false},
                                                          {"scale_attn_by_inverse_layer_idx", true},
                                                          {"model_type", "gpt_neox"}};
  for (const auto& [key, value] : cases) {
    Folder folder;
    folder.config[key] = value;
    const auto path = folder.write();
    const auto read = read_initial_model(path);
    ASSERT_FALSE(read) << key;
    EXPECT_NE(describe(read.error())
                  .find(std::string(key) + " is " + value.dump() + "; this trainer computes "),
              std::string::npos)
        << describe(read.error());
  }
}

TEST(InitialModel, folders_and_files_that_are_none_are_named) {
  const TemporaryFolder empty;
  EXPECT_EQ(
      describe(read_initial_model(empty.path()).error()),
      empty.path().string() + ": holds neither model.safetensors nor model.safetensors.index.json");
  EXPECT_EQ(describe(read_initial_model(empty.path() / "no").error()),
            (empty.path() / "no").string() +
                ": does not exist; it must be a folder as transformers saves it, or a "
                ".safetensors file");
}

}  // namespace
}  // namespace tj::trainer
