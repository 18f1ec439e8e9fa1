#include "trainer/workloads/pi0/trained_pi0.h"

#include <algorithm>
#include <utility>

#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/trained_weights.h"
#include "trainer/process/durable_file.h"
#include "trainer/workload/read_weights.h"
#include "trainer/workloads/pi0/pi0_json.h"
#include "trainer/workloads/pi0/pi0_weights.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kConfigBytesMax = 1 << 20;

Error wrong(const TrainedPi0Request& request, const Error& why) {
  return {.code = Code::invalid,
          .message = describe(why),
          .subject = request.flag + " " + request.from.string()};
}

Result<Pi0Config> config_of(const TrainedPi0Request& request, const fs::path& weights) {
  std::error_code unreadable;
  const auto folder = fs::is_directory(weights, unreadable) ? weights : weights.parent_path();
  const auto file = folder / kConfigFile;
  if (fs::exists(file, unreadable)) {
    const auto text = read_small_file(file, kConfigBytesMax);
    if (!text) return text.error();
    return pi0_config_from(*text, file);
  }
  const auto presets = pi0_presets();
  const auto found =
      request.preset ? std::ranges::find(presets, *request.preset, &Preset::name) : presets.end();
  if (found != presets.end()) return pi0_model(*found);
  return Error{.code = Code::invalid,
               .message = "is needed: no config.json beside " + weights.string() +
                          " says which model the weights are of",
               .subject = "--model"};
}

}  // namespace

Result<TrainedPi0> open_trained_pi0(const TrainedPi0Request& request) {
  const auto path = find_trained_weights(request.from, request.flag);
  if (!path) return path.error();
  const auto config = config_of(request, *path);
  if (!config) return wrong(request, config.error());
  const auto specs = pi0_tensors(*config).specs;
  const auto reader = open_pi0_weights(*path, specs);
  if (!reader) return wrong(request, reader.error());
  auto weights = read_weights(*reader, specs, request.options);
  if (!weights) return wrong(request, weights.error());
  return TrainedPi0{.weights = *path,
                    .config = *config,
                    .model = std::make_unique<Pi0>(std::move(*weights), *config, request.options)};
}

}  // namespace tj::trainer
