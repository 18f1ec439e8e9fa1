#include "trainer/workloads/taehv/codec_model.h"

#include <torch/types.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/trained_weights.h"
#include "trainer/workload/autocast.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workloads/taehv/taehv_weights.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kConfigBytesMax = 1 << 20;

Error wrong(const fs::path& weights, std::string message) {
  return {.code = Code::invalid,
          .message = std::move(message),
          .subject = "--weights " + weights.string()};
}

/// The preset whose config.json stands beside the weights; the first of several that are alike.
std::optional<std::string> name_beside(const fs::path& weights) {
  std::error_code unreadable;
  const auto folder = fs::is_directory(weights, unreadable) ? weights : weights.parent_path();
  const auto text = read_small_file(folder / kConfigFile, kConfigBytesMax);
  if (!text) return std::nullopt;
  const auto found = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  for (const auto& preset : taehv_presets())
    if (nlohmann::json::parse(taehv_config_json(taehv_model(preset))) == found)
      return std::string(preset.name);
  return std::nullopt;
}

/// As convolutions like to have them: in their type, and of each pixel all channels beside each
/// other.
at::Tensor placed(const at::Tensor& weight, const ModelOptions& options) {
  const auto there = weight.to(device_of(options.gpu), type_of(options.precision));
  return there.dim() == 4 ? there.contiguous(at::MemoryFormat::ChannelsLast) : there;
}

Result<void> read_weights(const TensorReader& reader, const std::vector<TensorSpec>& specs,
                          std::vector<at::Tensor>& weights) {
  for (const auto& spec : specs) {
    auto weight = torch::empty(spec.shape);
    const std::span floats(weight.data_ptr<float>(), static_cast<std::size_t>(weight.numel()));
    const auto read = reader({.name = spec.name, .shape = spec.shape, .floats = floats});
    if (!read) return read;
    weights.push_back(std::move(weight));
  }
  return {};
}

}  // namespace

Result<CodecModel> open_codec_model(const CodecModelRequest& request) {
  const auto path = find_trained_weights(request.weights, "--weights");
  if (!path) return path.error();
  const auto name = request.name ? request.name : name_beside(*path);
  if (!name)
    return Error{.code = Code::invalid,
                 .message = "is needed: no config.json beside " + path->string() +
                            " says which model the weights are of",
                 .subject = "--model"};
  const auto preset = std::ranges::find(taehv_presets(), *name, &Preset::name);
  TJ_CHECK(preset != taehv_presets().end(), "one of this workload's");
  CodecModel codec{.name = *name, .config = taehv_model(*preset), .model = nullptr};
  const auto specs = taehv_layers(codec.config).tensors;
  const auto reader = open_taehv_weights(*path, specs);
  if (!reader) return wrong(request.weights, describe(reader.error()));
  std::vector<at::Tensor> weights;
  if (const auto read = read_weights(*reader, specs, weights); !read)
    return wrong(request.weights, describe(read.error()));
  const ModelKeeper keeper{.place = [&](std::size_t index, const at::Tensor&) {
    return placed(weights[index], request.options);
  }};
  codec.model = std::make_unique<Taehv>(codec.config, TaehvLoss{}, request.options, keeper);
  return codec;
}

}  // namespace tj::trainer
