#include "trainer/workloads/pi0/pi0_weights.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <optional>

#include "tests/temporary_folder.h"
#include "tests/trainer/pi0/batches.h"
#include "tests/trainer/pi0/presets.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/process/durable_file.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workloads/pi0/pi0_json.h"
#include "trainer/workloads/pi0/pi0_workload.h"
#include "trainer/workloads/pi0/trained_pi0.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

const std::string kWords =
    "paligemma_with_expert.paligemma.model.language_model.embed_tokens.weight";

/// Tensors of a model by name, as a file holds them.
using Named = std::map<std::string, at::Tensor>;

Named weights_of(const Pi0Config& config) {
  const auto specs = pi0_tensors(config).specs;
  const auto tensors = initial_tensors(specs, {.seed = 5}, {});
  Named named;
  for (std::size_t i = 0; i < specs.size(); ++i) named[specs[i].name] = tensors[i].detach();
  return named;
}

void write(const fs::path& path, const Named& named) {
  std::vector<TensorBytes> tensors;
  for (const auto& [name, tensor] : named)
    tensors.push_back({.name = name,
                       .shape = tensor.sizes().vec(),
                       .bytes = {static_cast<const std::byte*>(tensor.data_ptr()),
                                 static_cast<std::size_t>(tensor.nbytes())}});
  const auto written = write_safetensors(path, tensors, {});
  ASSERT_TRUE(written) << describe(written.error());
}

Named renamed(const Named& named, const std::function<std::string(const std::string&)>& name_of) {
  Named result;
  for (const auto& [name, tensor] : named) result[name_of(name)] = tensor;
  return result;
}

/// Each tensor as the reader reads it.
std::optional<Named> read_all(const fs::path& path, const Pi0Config& config) {
  const auto specs = pi0_tensors(config).specs;
  const auto reader = open_pi0_weights(path, specs);
  if (!reader) {
    ADD_FAILURE() << describe(reader.error());
    return std::nullopt;
  }
  Named named;
  for (const auto& spec : specs) {
    auto tensor = torch::empty(spec.shape);
    const auto read =
        (*reader)({.name = spec.name,
                   .shape = spec.shape,
                   .floats = {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())}});
    if (!read) ADD_FAILURE() << describe(read.error());
    named[spec.name] = tensor;
  }
  return named;
}

void expect_equal(const std::optional<Named>& read, const Named& wanted) {
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), wanted.size());
  for (const auto& [name, tensor] : wanted) EXPECT_TRUE(read->at(name).equal(tensor)) << name;
}

TEST(Pi0Weights, files_of_openpi_and_of_lerobot_are_read) {
  const TemporaryFolder folder;
  for (const auto kind : kPi0Kinds) {
    const auto config = smallest_pi0(kind);
    const auto named = weights_of(config);
    write(folder.path() / "openpi.safetensors", named);
    expect_equal(read_all(folder.path() / "openpi.safetensors", config), named);
    const auto of_lerobot = renamed(named, [](const auto& name) { return "model." + name; });
    write(folder.path() / "model.safetensors", of_lerobot);
    expect_equal(read_all(folder.path(), config), named);
  }
}

TEST(Pi0Weights, names_of_newer_transformers_are_read) {
  const TemporaryFolder folder;
  const auto config = smallest_pi0();
  const auto named = weights_of(config);
  const std::string inner = "vision_model.";
  auto newer = renamed(named, [&](std::string name) {
    const auto at = name.find(inner);
    return at == std::string::npos ? name : name.erase(at, inner.size());
  });
  write(folder.path() / "a.safetensors", newer);
  expect_equal(read_all(folder.path() / "a.safetensors", config), named);
}

/// Of two tensors that are one, files keep one; the expert has a head that nothing uses.
TEST(Pi0Weights, a_head_stands_for_the_words_and_the_experts_is_passed_over) {
  const TemporaryFolder folder;
  const auto config = smallest_pi0();
  const auto named = weights_of(config);
  auto other = renamed(named, [](const auto& name) {
    return "model." + (name == kWords ? "paligemma_with_expert.paligemma.lm_head.weight" : name);
  });
  other["model.paligemma_with_expert.gemma_expert.lm_head.weight"] = torch::zeros({64, 32});
  write(folder.path() / "a.safetensors", other);
  expect_equal(read_all(folder.path() / "a.safetensors", config), named);
  other["model." + kWords] = named.at(kWords);  // both are there
  write(folder.path() / "b.safetensors", other);
  expect_equal(read_all(folder.path() / "b.safetensors", config), named);
}

TEST(Pi0Weights, sizes_are_those_of_the_tensors) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.safetensors";
  for (const auto kind : kPi0Kinds) {
    write(path, weights_of(smallest_pi0(kind)));
    const auto sizes = read_pi0_sizes(path);
    ASSERT_TRUE(sizes) << describe(sizes.error());
    EXPECT_EQ(sizes->kind, kind);
    EXPECT_EQ(sizes->vocabulary, 64);
    EXPECT_EQ(sizes->action_width, 4);
    EXPECT_EQ(sizes->tokens_of_image, 4);
  }
}

TEST(Pi0Weights, what_does_not_fit_is_named) {
  const TemporaryFolder folder;
  const auto config = smallest_pi0();
  const auto path = folder.path() / "a.safetensors";
  const auto specs = pi0_tensors(config).specs;
  const auto failure = [&](const Named& named) {
    write(path, named);
    const auto reader = open_pi0_weights(path, specs);
    return reader ? "it was read" : describe(reader.error());
  };
  const auto named = weights_of(config);
  auto other = named;
  other.erase("action_out_proj.bias");
  EXPECT_NE(failure(other).find("has no tensor action_out_proj.bias"), std::string::npos);
  other = named;
  other["action_out_proj.bias"] = torch::zeros({5});
  EXPECT_NE(failure(other).find("tensor action_out_proj.bias is [5], the model's is [4]"),
            std::string::npos)
      << failure(other);
  other = named;
  other["more"] = torch::zeros({5});
  EXPECT_NE(failure(other).find("tensor more is none of this model's"), std::string::npos);
  other = named;
  other["model.action_out_proj.bias"] = torch::zeros({4});
  EXPECT_NE(failure(other).find("there twice"), std::string::npos);
  const auto nowhere = read_pi0_sizes(folder.path() / "none");
  ASSERT_FALSE(nowhere);
  EXPECT_NE(describe(nowhere.error()).find("does not exist"), std::string::npos);
  write(path, {{"wte.weight", torch::zeros({2, 3})}});
  EXPECT_NE(describe(read_pi0_sizes(path).error()).find("is this a pi0?"), std::string::npos);
}

TEST(Pi0Weights, a_trained_model_is_found_with_its_shape) {
  const TemporaryFolder folder;
  for (const auto kind : kPi0Kinds) {
    const auto config = smallest_pi0(kind);
    const auto named = weights_of(config);
    write(folder.path() / "model.safetensors", named);
    ASSERT_TRUE(write_durably(folder.path() / "config.json",
                              pi0_config_json(config, Normalisation::mean_std)));
    const auto trained = open_trained_pi0({.from = folder.path(), .options = {.seed = 1}});
    ASSERT_TRUE(trained) << describe(trained.error());
    EXPECT_EQ(trained->config, config);
    const Pi0 model(config, {.seed = 5});
    const auto batch = random_batch(config, 2);
    const auto noise = torch::randn(batch.actions.sizes());
    EXPECT_TRUE(trained->model->sampled_actions(batch.observation, noise)
                    .equal(model.sampled_actions(batch.observation, noise)));
  }
  fs::remove(folder.path() / "config.json");
  const auto unknown = open_trained_pi0({.from = folder.path(), .options = {}});
  ASSERT_FALSE(unknown);
  EXPECT_NE(describe(unknown.error()).find("--model: is needed"), std::string::npos)
      << describe(unknown.error());
}

Flags flags_of(std::initializer_list<Flags::value_type> flags) { return Flags(flags); }

TEST(Pi0Workload, weights_say_what_the_preset_can_not) {
  const TemporaryFolder folder;
  auto config = pi0_named("pi0-nano");
  config.vocabulary = 100;
  config.action_width = config.state_width = config.actions_counted = 6;
  const auto path = folder.path() / "a.safetensors";
  write(path, weights_of(config));
  const auto& preset = *std::ranges::find(pi0_presets(), "pi0-nano", &Preset::name);
  const auto configured = [&](const Preset& of, const Flags& flags) {
    Pi0Workload workload(of);
    const auto read = workload.read_init(path);
    if (!read) ADD_FAILURE() << describe(read.error());
    FlagReader reader(flags);
    workload.configure(reader);
    return std::pair(workload.config(), reader.error() ? describe(*reader.error()) : "");
  };
  const auto [found, failure] = configured(preset, {});
  EXPECT_EQ(failure, "");
  EXPECT_EQ(found, config);
  EXPECT_NE(configured(preset, flags_of({{"--action-dim", "7"}})).second.find("has 6"),
            std::string::npos);
  EXPECT_NE(configured(preset, flags_of({{"--image-size", "28"}})).second.find("64 tokens"),
            std::string::npos);
  const auto& other = *std::ranges::find(pi0_presets(), "pi05-nano", &Preset::name);
  EXPECT_NE(configured(other, {}).second.find("is a pi0"), std::string::npos);
}

TEST(Pi0Workload, flags_that_make_no_model_are_named) {
  const auto& preset = *std::ranges::find(pi0_presets(), "pi0-nano", &Preset::name);
  const auto failure = [&](const Flags& flags) {
    Pi0Workload workload(preset);
    FlagReader reader(flags);
    workload.configure(reader);
    return reader.error() ? describe(*reader.error()) : "";
  };
  EXPECT_EQ(failure(flags_of({{"--cameras", "top,left"}, {"--horizon", "4"}})), "");
  EXPECT_NE(failure(flags_of({{"--cameras", "top,,left"}})).find("one to sixteen names"),
            std::string::npos);
  EXPECT_NE(failure(flags_of({{"--image-size", "60"}})).find("a multiple of 7"), std::string::npos);
  EXPECT_NE(failure(flags_of({{"--horizon", "0"}})).find("--horizon"), std::string::npos);
}

TEST(Pi0Workload, samples_that_are_made_up_can_be_trained_on) {
  for (const char* const name : {"pi0-nano", "pi05-nano"}) {
    const auto& preset = *std::ranges::find(pi0_presets(), name, &Preset::name);
    Pi0Workload workload(preset);
    const Flags none;
    FlagReader reader(none);
    workload.configure(reader);
    const auto opened = workload.make_up_data();
    ASSERT_TRUE(opened.source);
    const auto batch = read_batch(*opened.source, 0, 2);
    std::int64_t bytes = 0;
    for (const auto& tensor : batch) bytes += static_cast<std::int64_t>(tensor.nbytes());
    EXPECT_EQ(bytes, 2 * workload.cost().bytes);
    const auto model = workload.make_model({.seed = 1}, {});
    const auto loss = model->pass(batch, 0).loss;
    loss.backward();
    EXPECT_GT(loss.item<double>(), 0);
  }
}

}  // namespace
}  // namespace tj::trainer
