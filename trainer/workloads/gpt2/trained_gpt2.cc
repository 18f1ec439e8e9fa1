#include "trainer/workloads/gpt2/trained_gpt2.h"

#include <algorithm>

#include "trainer/checkpoint/trained_weights.h"
#include "trainer/workload/read_weights.h"
#include "trainer/workloads/gpt2/hugging_face.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

Error wrong(const fs::path& from, std::string message) {
  return {
      .code = Code::invalid, .message = std::move(message), .subject = "--from " + from.string()};
}

/// Whoever wrote the files may have written anything.
Result<void> check(const Gpt2Config& config, const fs::path& weights) {
  const std::pair<const char*, std::int64_t> extents[] = {{"layers", config.layers},
                                                          {"columns of wte", config.width},
                                                          {"rows of wpe", config.context},
                                                          {"rows of wte", config.vocabulary}};
  for (const auto& [what, count] : extents)
    if (count < 1) return wrong(weights, "has no " + std::string(what));
  if (config.heads >= 1 && config.width % config.heads == 0) return {};
  return wrong(weights, "has " + std::to_string(config.heads) +
                            " heads by its config.json; they must divide the width, " +
                            std::to_string(config.width));
}

Result<std::int64_t> heads_of(const TrainedGpt2Request& request, const fs::path& weights) {
  const auto presets = gpt2_presets();
  const auto found =
      request.preset ? std::ranges::find(presets, *request.preset, &Preset::name) : presets.end();
  if (found != presets.end()) return gpt2_model(*found).heads;
  return Error{.code = Code::invalid,
               .message = "is needed: no config.json beside " + weights.string() +
                          " says how many heads the model has",
               .subject = "--model"};
}

}  // namespace

Result<TrainedGpt2> open_trained_gpt2(const TrainedGpt2Request& request) {
  const auto path = find_trained_weights(request.from, "--from");
  if (!path) return path.error();
  const auto found = read_initial_model(*path);
  if (!found) return wrong(request.from, describe(found.error()));
  TrainedGpt2 trained{.weights = *path,
                      .config = found->model,
                      .tokenizer_vocabulary = found->tokenizer_vocabulary,
                      .model = nullptr};
  if (trained.config.heads == 0 && !found->has_config) {
    const auto heads = heads_of(request, *path);
    if (!heads) return heads.error();
    trained.config.heads = *heads;
  }
  if (const auto checked = check(trained.config, *path); !checked) return checked.error();
  const auto specs = gpt2_tensors(trained.config);
  std::vector<std::string> names;
  for (const auto& spec : specs) names.push_back(spec.name);
  const auto reader = open_initial_weights(*path, names);
  if (!reader) return wrong(request.from, describe(reader.error()));
  auto weights = read_weights(*reader, specs, request.options);
  if (!weights) return wrong(request.from, describe(weights.error()));
  trained.model = std::make_unique<Gpt2>(std::move(*weights), trained.config, request.options);
  return trained;
}

}  // namespace tj::trainer
