#include "trainer/workloads/gpt2/hugging_face.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "trainer/checkpoint/file_plan.h"
#include "trainer/values/json_integer.h"
#include "trainer/values/json_text.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;
using NamedTensors = std::map<std::string, const StoredTensor*>;

constexpr std::int64_t kConfigBytesMax = 1 << 20;
constexpr const char* kHead = "lm_head.weight";
constexpr const char* kTokenEmbedding = "transformer.wte.weight";
constexpr const char* kPositionEmbedding = "transformer.wpe.weight";
constexpr std::string_view kPrefix = "transformer.";
constexpr std::string_view kLayerPrefix = "transformer.h.";
constexpr const char* kActivation = "activation_function";
constexpr const char* kGpt2Activation = "gelu_new";  // GPT2Config's default
constexpr std::int64_t kGpt2DocumentEnd = 50256;     // of GPT2Config, too
/// Of our own: other programs pass over it.
constexpr const char* kTokenizerVocabulary = "tokenizer_vocab_size";

Error wrong(const std::string& subject, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = subject};
}

Result<TensorCatalog> open_catalog(const fs::path& path) {
  std::error_code unreadable;
  if (!fs::is_directory(path, unreadable)) {
    if (fs::exists(path, unreadable)) return TensorCatalog::open_file(path);
    return wrong(path.string(),
                 "does not exist; it must be a folder as transformers saves it, or a "
                 ".safetensors file");
  }
  const bool has_weights = fs::exists(path / group_file_name("model", 0, 1), unreadable) ||
                           fs::exists(path / index_name("model"), unreadable);
  if (has_weights) return TensorCatalog::open(path, "model");
  return wrong(path.string(), "holds neither model.safetensors nor model.safetensors.index.json");
}

/// Tensors under our names. Masks, which older files hold, are no weights.
Result<NamedTensors> by_our_names(const TensorCatalog& catalog) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : catalog.tensors()) {
    if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) continue;
    const bool is_ours = name.starts_with(kPrefix) || name == kHead;
    const std::string ours = is_ours ? name : std::string(kPrefix) + name;
    if (!tensors.emplace(ours, &tensor).second)
      return wrong("tensor " + ours, "is there twice, with and without \"transformer.\"");
  }
  // Of tied tensors a file may keep either.
  if (!tensors.contains(kTokenEmbedding) && tensors.contains(kHead))
    tensors[kTokenEmbedding] = tensors[kHead];
  return tensors;
}

Result<std::pair<std::int64_t, std::int64_t>> matrix_shape(const NamedTensors& tensors,
                                                           const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return wrong("tensor " + name, "is missing; is this a GPT-2?");
  const auto& shape = found->second->shape;
  if (shape.size() != 2)
    return wrong("tensor " + name, "has the shape " + shape_text(shape) + "; it must have two");
  return std::pair(shape[0], shape[1]);
}

/// Layers are numbered from 0 without holes; a hole is a missing tensor later on.
std::int64_t layer_count(const NamedTensors& tensors) {
  std::set<std::string> layers;
  for (const auto& [name, tensor] : tensors) {
    if (!name.starts_with(kLayerPrefix)) continue;
    layers.insert(name.substr(kLayerPrefix.size(),
                              name.find('.', kLayerPrefix.size()) - kLayerPrefix.size()));
  }
  return static_cast<std::int64_t>(layers.size());
}

Result<Gpt2Config> shape_of(const NamedTensors& tensors) {
  const auto tokens = matrix_shape(tensors, kTokenEmbedding);
  if (!tokens) return tokens.error();
  const auto positions = matrix_shape(tensors, kPositionEmbedding);
  if (!positions) return positions.error();
  return Gpt2Config{.layers = layer_count(tensors),
                    .heads = 0,
                    .width = tokens->second,
                    .context = positions->first,
                    .vocabulary = tokens->first};
}

/// By the names of transformers' activations.py; absent: another function.
std::optional<Gelu> gelu_of_activation(const json& name) {
  if (name == kGpt2Activation || name == "gelu_pytorch_tanh") return Gelu::tanh;
  return name == "gelu" ? std::optional(Gelu::erf) : std::nullopt;
}

const char* activation_of(Gelu gelu) { return gelu == Gelu::tanh ? kGpt2Activation : "gelu"; }

/// What of a config.json would make transformers compute something else than we do.
Result<void> check_kind(const json& config, const std::string& subject) {
  const auto must_be = [&](const char* key, const json& otherwise,
                           const std::vector<json>& allowed) -> Result<void> {
    const json value = config.value(key, otherwise);
    if (std::ranges::find(allowed, value) != allowed.end()) return {};
    return wrong(subject, std::string(key) + " is " + value.dump() + "; this trainer computes " +
                              allowed.front().dump());
  };
  const struct {
    const char* key;
    json otherwise;  // GPT2Config's default
    std::vector<json> allowed;
  } rules[] = {
      {"model_type", "gpt2", {"gpt2"}},
      {"layer_norm_epsilon", 1e-5, {1e-5}},
      {"tie_word_embeddings", true, {true}},
      {"scale_attn_weights", true, {true}},
      {"scale_attn_by_inverse_layer_idx", false, {false}},
      {"add_cross_attention", false, {false}},
  };
  for (const auto& rule : rules) {
    if (auto fits = must_be(rule.key, rule.otherwise, rule.allowed); !fits) return fits;
  }
  return {};
}

Result<Gelu> gelu_in(const json& config, const std::string& subject) {
  const json name = config.value(kActivation, json(kGpt2Activation));
  if (const auto gelu = gelu_of_activation(name)) return *gelu;
  return wrong(subject,
               std::string(kActivation) + " is " + name.dump() +
                   "; this trainer computes \"gelu_new\", \"gelu_pytorch_tanh\" or \"gelu\"");
}

Result<std::int64_t> tokenizer_vocabulary_in(const json& config, std::int64_t vocabulary,
                                             const std::string& subject) {
  if (!config.contains(kTokenizerVocabulary)) return 0;
  const auto size = integer_of(config.at(kTokenizerVocabulary));
  if (size >= 1 && size <= vocabulary) return size;
  return wrong(subject, std::string(kTokenizerVocabulary) + " is " + std::to_string(size) +
                            "; it must be from 1 to vocab_size, " + std::to_string(vocabulary));
}

/// Fills in what only config.json says; what the weights say as well must be the same.
Result<InitialModel> with_config(InitialModel initial, const fs::path& file) {
  auto& model = initial.model;
  const std::string subject = file.string();
  const auto text = read_small_file(file, kConfigBytesMax);
  if (!text) return text.error();
  const json config = json_of(*text);
  if (!config.is_object()) return wrong(subject, "is not a JSON object (cut short?)");
  try {
    if (const auto fits = check_kind(config, subject); !fits) return fits.error();
    const auto said = [&](const char* key) { return integer_of(config.at(key)); };
    model.heads = said("n_head");
    const std::tuple<const char*, std::int64_t, const char*> both[] = {
        {"n_layer", model.layers, "layers"},
        {"n_embd", model.width, "columns of wte"},
        {"n_positions", model.context, "rows of wpe"},
        {"vocab_size", model.vocabulary, "rows of wte"}};
    for (const auto& [key, found, what] : both) {
      if (said(key) == found) continue;
      return wrong(subject, std::string(key) + " is " + std::to_string(said(key)) +
                                "; the weights have " + std::to_string(found) + " " + what);
    }
    const auto gelu = gelu_in(config, subject);
    if (!gelu) return gelu.error();
    model.gelu = *gelu;
    const auto tokens = tokenizer_vocabulary_in(config, model.vocabulary, subject);
    if (!tokens) return tokens.error();
    initial.tokenizer_vocabulary = *tokens;
  } catch (const json::exception& failure) {
    return wrong(subject, std::string("lacks a field of a GPT-2: ") + failure.what());
  }
  return initial;
}

Result<std::vector<float>> floats_of(const NamedTensors::value_type& named) {
  const auto& [name, tensor] = named;
  std::vector<float> floats(static_cast<std::size_t>(element_count(tensor->shape)));
  const auto read = read_tensor(tensor, {.name = name, .shape = tensor->shape, .floats = floats});
  if (!read) return read.error();
  return floats;
}

Result<void> check_tied(const NamedTensors& tensors) {
  const auto head = tensors.find(kHead);
  const auto embedding = tensors.find(kTokenEmbedding);
  if (head == tensors.end() || embedding == tensors.end()) return {};
  if (head->second == embedding->second) return {};
  const auto left = floats_of(*head);
  if (!left) return left.error();
  const auto right = floats_of(*embedding);
  if (!right) return right.error();
  if (head->second->shape == embedding->second->shape && *left == *right) return {};
  return wrong("tensor " + std::string(kHead), "differs from wte.weight; this model ties the two");
}

}  // namespace

Result<InitialModel> read_initial_model(const fs::path& path) {
  const auto catalog = open_catalog(path);
  if (!catalog) return catalog.error();
  const auto tensors = by_our_names(*catalog);
  if (!tensors) return tensors.error();
  const auto model = shape_of(*tensors);
  if (!model) return model.error();
  InitialModel initial{.path = path, .model = *model};
  std::error_code unreadable;
  const fs::path folder = fs::is_directory(path, unreadable) ? path : path.parent_path();
  if (!fs::exists(folder / "config.json", unreadable)) return initial;
  initial.has_config = true;
  return with_config(std::move(initial), folder / "config.json");
}

Result<TensorReader> open_initial_weights(const fs::path& path,
                                          std::span<const std::string> names) {
  auto opened = open_catalog(path);
  if (!opened) return opened.error();
  const auto catalog = std::make_shared<const TensorCatalog>(std::move(*opened));
  auto tensors = by_our_names(*catalog);
  if (!tensors) return tensors.error();
  if (auto tied = check_tied(*tensors); !tied) return tied.error();
  const std::set<std::string> wanted(names.begin(), names.end());
  for (const auto& [name, tensor] : *tensors) {
    if (name != kHead && !wanted.contains(name))
      return wrong("tensor " + name, "is none of this model's");
  }
  return TensorReader([catalog, tensors = std::move(*tensors)](const TensorTarget& target) {
    const auto found = tensors.find(target.name);
    return read_tensor(found == tensors.end() ? nullptr : found->second, target);
  });
}

std::string gpt2_config_json(const Gpt2Config& model, std::int64_t tokenizer_vocabulary) {
  constexpr int kIndent = 2;
  nlohmann::ordered_json document = {{"architectures", {"GPT2LMHeadModel"}},
                                     {"model_type", "gpt2"},
                                     {kActivation, activation_of(model.gelu)},
                                     {"layer_norm_epsilon", 1e-5},
                                     {"n_layer", model.layers},
                                     {"n_head", model.heads},
                                     {"n_embd", model.width},
                                     {"n_positions", model.context},
                                     {"vocab_size", model.vocabulary},
                                     {"tie_word_embeddings", true},
                                     {"torch_dtype", "float32"}};
  // Else transformers takes GPT-2's, which this model does not know.
  if (model.vocabulary <= kGpt2DocumentEnd)
    document["bos_token_id"] = document["eos_token_id"] = nullptr;
  if (tokenizer_vocabulary > 0) document[kTokenizerVocabulary] = tokenizer_vocabulary;
  return document.dump(kIndent) + "\n";
}

}  // namespace tj::trainer
