#include "trainer/checkpoint/manifest.h"

#include <nlohmann/json.hpp>

#include "trainer/values/json_integer.h"
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
    const int version = integer_of<int>(document.at("version"));
    if (version != kManifestVersion) {
      return unusable("is of version " + std::to_string(version) + "; this trainer reads version " +
                      std::to_string(kManifestVersion));
    }
    manifest.step = integer_of(document.at("step"));
    manifest.next_sample = integer_of(document.at("next_sample"));
    manifest.optimizer_steps = integer_of(document.at("optimizer_steps"));
    const auto& scale = document.at("loss_scale");
    manifest.loss_scale = {.scale = scale.at("scale").get<double>(),
                           .good_steps = integer_of(scale.at("good_steps"))};
    manifest.seed = integer_of<std::uint64_t>(document.at("seed"));
    manifest.data_tokens = integer_of(document.at("data_tokens"));
    manifest.loss = document.at("loss").get<double>();
    const auto& model = document.at("model");
    manifest.model = {.layers = integer_of(model.at("layers")),
                      .heads = integer_of(model.at("heads")),
                      .width = integer_of(model.at("width")),
                      .context = integer_of(model.at("context")),
                      .vocabulary = integer_of(model.at("vocabulary"))};
    const auto& numerics = document.at("numerics");
    manifest.numerics = {.logical_shards = integer_of(numerics.at("logical_shards")),
                         .batch_size = integer_of(numerics.at("batch_size")),
                         .threads = integer_of<int>(numerics.at("threads")),
                         .has_averages = numerics.at("has_averages").get<bool>()};
    for (const auto& [name, digest] : document.at("files").items()) {
      manifest.files[name] = {.bytes = integer_of(digest.at("bytes")),
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
