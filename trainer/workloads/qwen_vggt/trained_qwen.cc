#include "trainer/workloads/qwen_vggt/trained_qwen.h"

#include <torch/types.h>

#include <map>
#include <utility>

#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/trained_weights.h"
#include "trainer/process/durable_file.h"
#include "trainer/values/failure.h"
#include "trainer/workload/autocast.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workload/read_weights.h"
#include "trainer/workloads/qwen_vggt/qwen_vggt_workload.h"
#include "trainer/workloads/qwen_vggt/qwen_weights.h"
#include "trainer/workloads/qwen_vggt/vggt_weights.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kConfigBytesMax = 1 << 20;
constexpr std::uint64_t kSeed = 1337;  // of what no file says
constexpr std::int64_t kAnswerCacheBytes = 256 << 20;

Error wrong(const TrainedQwenRequest& request, const Error& why) {
  auto error = of_flag(request.flag, request.from.string(), why);
  error.code = Code::invalid;
  return error;
}

std::unique_ptr<Vggt> random_vggt(const VggtConfig& config, const ModelOptions& options,
                                  Communicator* ranks) {
  auto place = options;
  place.seed = kSeed;
  if (ranks != nullptr) place.gpu.reset();
  auto weights = initial_tensors(vggt_tensors(config).specs, place, {});
  for (auto& weight : weights) weight = weight.to(type_of(options.precision));
  return std::make_unique<Vggt>(std::move(weights), config, options, ranks);
}

/// Reads from `reader`, and the tensors of a coupling from memory.
TensorReader with_new_coupling(TensorReader reader, const QwenVggtConfig& config) {
  auto fresh = std::make_shared<std::map<std::string, at::Tensor>>();
  const auto specs = geometry_tensors(config.geometry());
  const auto tensors = initial_tensors(specs, {.seed = kSeed}, {});
  for (std::size_t i = 0; i < specs.size(); ++i)
    (*fresh)[specs[i].name] = tensors[i].detach().contiguous();
  return [reader = std::move(reader), fresh](const TensorTarget& target) -> Result<void> {
    const auto found = fresh->find(target.name);
    if (found == fresh->end()) return reader(target);
    const auto* const floats = found->second.const_data_ptr<float>() + target.begin;
    std::copy_n(floats, target.floats.size(), target.floats.begin());
    return {};
  };
}

fs::path folder_of(const fs::path& weights) {
  std::error_code unreadable;
  return fs::is_directory(weights, unreadable) ? weights : weights.parent_path();
}

/// Files beside the weights say how their training saw pictures and videos.
Result<void> check_sight(const fs::path& weights, const QwenVggtConfig& config) {
  for (const char* const name : {kPreprocessorFile, kVideoPreprocessorFile}) {
    const auto file = folder_of(weights) / name;
    const auto text = read_small_file(file, kConfigBytesMax);
    if (!text && text.error().code == Code::not_found) continue;
    if (!text) return text.error();
    const auto checked = check_patches(*text, file, conversation_shape_of(config).patches);
    if (!checked) return checked;
  }
  return {};
}

Result<QwenVggtConfig> config_of(const TrainedQwenRequest& request, const fs::path& folder) {
  const auto file = folder / kConfigFile;
  const auto text = read_small_file(file, kConfigBytesMax);
  if (!text) return wrong(request, text.error());
  auto config = qwen_vggt_config_from(*text, file);
  if (!config) return wrong(request, config.error());
  if (!request.vggt) return config;
  auto coupling = with_vggt(*request.vggt, config->coupling.value_or(Coupling{}));
  if (!coupling) return of_flag(request.vggt_flag, *request.vggt, coupling.error());
  config->coupling = std::move(*coupling);
  return config;
}

}  // namespace

Result<std::optional<Coupling>> with_vggt(const std::string& named, Coupling coupling) {
  if (named == "off") return std::optional<Coupling>();
  coupling.file = named == "random" ? "" : named;
  if (!coupling.file.empty()) {
    const auto config = read_vggt_config(coupling.file);
    if (!config) return config.error();
    coupling.vggt = *config;
  }
  return std::optional(std::move(coupling));
}

Result<std::unique_ptr<SceneFeatures>> open_scene_features(const Coupling& coupling,
                                                           const ModelOptions& options,
                                                           const SceneRoom& room) {
  std::unique_ptr<Vggt> vggt;
  if (coupling.file.empty()) {
    vggt = random_vggt(coupling.vggt, options, room.ranks);
  } else {
    auto opened = open_vggt(coupling.file, options, room.ranks);
    if (!opened) return opened.error();
    vggt = std::move(*opened);
  }
  return std::make_unique<SceneFeatures>(std::move(vggt), coupling.sight, room.cache_bytes_max);
}

Result<TensorReader> open_qwen_vggt_weights(const fs::path& path, const QwenVggtConfig& config) {
  if (const auto checked = check_sight(path, config); !checked) return checked.error();
  if (!config.coupling) return open_qwen_weights(path, qwen_tensors(config.qwen).specs);
  const auto is_coupled = has_coupling(path);
  if (!is_coupled) return is_coupled.error();
  if (*is_coupled) return open_qwen_weights(path, qwen_vggt_tensors(config).specs);
  auto reader = open_qwen_weights(path, qwen_tensors(config.qwen).specs);
  if (!reader) return reader.error();
  return with_new_coupling(std::move(*reader), config);
}

fs::path TrainedQwen::folder() const { return folder_of(weights); }

Result<TrainedQwen> open_trained_qwen(const TrainedQwenRequest& request) {
  const auto path = find_trained_weights(request.from, request.flag);
  if (!path) return path.error();
  TrainedQwen trained{.weights = *path, .config = {}, .model = nullptr};
  auto config = config_of(request, trained.folder());
  if (!config) return config.error();
  trained.config = std::move(*config);
  const auto reader = open_qwen_vggt_weights(*path, trained.config);
  if (!reader) return wrong(request, reader.error());
  auto weights = read_weights(*reader, qwen_vggt_tensors(trained.config).specs, request.options);
  if (!weights) return wrong(request, weights.error());
  std::unique_ptr<SceneFeatures> features;
  if (trained.config.coupling) {
    auto opened = open_scene_features(*trained.config.coupling, request.options,
                                      {.cache_bytes_max = kAnswerCacheBytes});
    if (!opened) {
      auto error = of_flag(request.vggt_flag, trained.config.coupling->file, opened.error());
      error.message += "; the flag names where VGGT's weights are now, or off";
      return error;
    }
    features = std::move(*opened);
  }
  trained.model = std::make_unique<QwenVggt>(std::move(*weights), trained.config, request.options,
                                             std::move(features));
  return trained;
}

}  // namespace tj::trainer
