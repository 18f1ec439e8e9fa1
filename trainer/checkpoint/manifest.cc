#include "trainer/checkpoint/manifest.h"

#include <nlohmann/json.hpp>

namespace tj::trainer {
namespace {
using nlohmann::ordered_json;
constexpr int kIndent = 2;

Error unusable(const std::string& message) {
  return {.code = Code::invalid, .message = message, .subject = "manifest.json"};
}
}  // namespace

std::string manifest_text(const Manifest& manifest) {
  const auto& model = manifest.model;
  ordered_json document = {
      {"version", kManifestVersion},
      {"step", manifest.step},
      {"next_sample", manifest.next_sample},
      {"optimizer_steps", manifest.optimizer_steps},
      {"loss_scale",
       {{"scale", manifest.loss_scale.scale}, {"good_steps", manifest.loss_scale.good_steps}}},
      {"seed", manifest.seed},
      {"data_tokens", manifest.data_tokens},
      {"loss", manifest.loss},
      {"model",
       {{"layers", model.layers},
        {"heads", model.heads},
        {"width", model.width},
        {"context", model.context},
        {"vocabulary", model.vocabulary}}},
      {"numerics",
       {{"logical_shards", manifest.numerics.logical_shards},
        {"batch_size", manifest.numerics.batch_size},
        {"threads", manifest.numerics.threads},
        {"has_averages", manifest.numerics.has_averages}}},
      {"files", ordered_json::object()}};
  for (const auto& [name, digest] : manifest.files) {
    document["files"][name] = {{"bytes", digest.bytes}, {"sha256", digest.sha256}};
  }
  return document.dump(kIndent) + "\n";
}

Result<Manifest> manifest_from(std::string_view text) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object()) return unusable("is not a JSON object (cut short?)");
  Manifest manifest;
  try {
    const int version = document.at("version").get<int>();
    if (version != kManifestVersion) {
      return unusable("is of version " + std::to_string(version) + "; this trainer reads version " +
                      std::to_string(kManifestVersion));
    }
    manifest.step = document.at("step").get<std::int64_t>();
    manifest.next_sample = document.at("next_sample").get<std::int64_t>();
    manifest.optimizer_steps = document.at("optimizer_steps").get<std::int64_t>();
    const auto& scale = document.at("loss_scale");
    manifest.loss_scale = {.scale = scale.at("scale").get<double>(),
                           .good_steps = scale.at("good_steps").get<std::int64_t>()};
    manifest.seed = document.at("seed").get<std::uint64_t>();
    manifest.data_tokens = document.at("data_tokens").get<std::int64_t>();
    manifest.loss = document.at("loss").get<double>();
    const auto& model = document.at("model");
    manifest.model = {.layers = model.at("layers").get<std::int64_t>(),
                      .heads = model.at("heads").get<std::int64_t>(),
                      .width = model.at("width").get<std::int64_t>(),
                      .context = model.at("context").get<std::int64_t>(),
                      .vocabulary = model.at("vocabulary").get<std::int64_t>()};
    const auto& numerics = document.at("numerics");
    manifest.numerics = {.logical_shards = numerics.at("logical_shards").get<std::int64_t>(),
                         .batch_size = numerics.at("batch_size").get<std::int64_t>(),
                         .threads = numerics.at("threads").get<int>(),
                         .has_averages = numerics.at("has_averages").get<bool>()};
    for (const auto& [name, digest] : document.at("files").items()) {
      manifest.files[name] = {.bytes = digest.at("bytes").get<std::int64_t>(),
                              .sha256 = digest.at("sha256").get<std::string>()};
    }
  } catch (const nlohmann::json::exception& failure) {
    return unusable(std::string("lacks a field: ") + failure.what());
  }
  return manifest;
}

std::string hugging_face_config(const Gpt2Config& model) {
  const ordered_json document = {{"architectures", {"GPT2LMHeadModel"}},
                                 {"model_type", "gpt2"},
                                 {"activation_function", "gelu_new"},
                                 {"layer_norm_epsilon", 1e-5},
                                 {"n_layer", model.layers},
                                 {"n_head", model.heads},
                                 {"n_embd", model.width},
                                 {"n_positions", model.context},
                                 {"vocab_size", model.vocabulary},
                                 {"tie_word_embeddings", true},
                                 {"torch_dtype", "float32"}};
  return document.dump(kIndent) + "\n";
}

}  // namespace tj::trainer
