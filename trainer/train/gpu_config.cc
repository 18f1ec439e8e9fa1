#include "trainer/train/gpu_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace tj::trainer {
namespace {

/// The preset is how one GPU trains.
GpuConfig of_one_gpu(const Preset& preset) {
  return {.name = preset.name,
          .ranks = 1,
          .batch_size = preset.batch_size,
          .lr = preset.lr,
          .data_threads = 1};
}

std::int64_t divided_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

/// As a flag says it, where that can be counted with; what is wrong with it the reader says.
std::optional<std::int64_t> given_accumulation(const Flags& flags, int world_size) {
  const auto flag = flags.find("--accumulation");
  if (flag == flags.end()) return std::nullopt;
  const std::string& text = flag->second;
  std::int64_t passes = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), passes);
  const bool is_whole = failure == std::errc{} && end == text.data() + text.size();
  if (!is_whole || passes < 1 || passes > kCountMax / world_size) return std::nullopt;
  return passes;
}

GpuConfig derived(const GpuConfig& base, int ranks, std::optional<std::int64_t> passes) {
  GpuConfig config = base;
  const auto pass = std::max<std::int64_t>(1, base.batch_size / (base.ranks * base.accumulation));
  config.ranks = ranks;
  config.accumulation = passes.value_or(divided_up(base.batch_size, ranks * pass));
  const std::int64_t shares = ranks * config.accumulation;
  config.batch_size = divided_up(base.batch_size, shares) * shares;
  // Adam's noise stays the same when its rate follows the square root of the batch (Malladi et al.
  // 2022, arXiv 2205.10287).
  if (config.batch_size != base.batch_size) {
    config.lr *=
        std::sqrt(static_cast<double>(config.batch_size) / static_cast<double>(base.batch_size));
  }
  return config;
}

std::string ranks_text(int ranks) {
  return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

/// What of `base` was kept, and what was changed.
std::string change_text(const GpuConfig& base, const GpuConfig& config) {
  const auto before = std::to_string(base.batch_size), after = std::to_string(config.batch_size);
  std::string text = config.batch_size == base.batch_size
                         ? "its batch of " + before + " is kept"
                         : "batch " + before + " -> " + after + ", a multiple of " +
                               ranks_text(config.ranks) + " x accumulation, lr x sqrt(" + after +
                               " / " + before + ")";
  if (config.accumulation != base.accumulation)
    text += ", accumulation " + std::to_string(base.accumulation) + " -> " +
            std::to_string(config.accumulation);
  return text;
}

RunConfig run_config(const GpuConfig& config, const Setting& row, const std::string& origin) {
  const auto otherwise = [&](std::string value) { return Otherwise{std::move(value), origin}; };
  return {.row = row,
          .batch_size = otherwise(std::to_string(config.batch_size)),
          .accumulation = otherwise(std::to_string(config.accumulation)),
          .lr = otherwise(number_text(config.lr)),
          .data_threads = otherwise(std::to_string(config.data_threads)),
          .gpu_precision = config.precision,
          .gpu_precision_origin = origin};
}

/// The preset as it is.
RunConfig without_config(const Preset& preset, const std::string& origin) {
  const std::string of_preset = "preset " + std::string(preset.name);
  RunConfig run = run_config(of_one_gpu(preset), {"config", "none", origin}, of_preset);
  run.accumulation.origin = run.data_threads.origin = "default";
  run.gpu_precision_origin = "default on a GPU";
  return run;
}

/// One that was made for at most so many ranks, or the preset.
RunConfig automatic(const Preset& preset, int ranks, std::optional<std::int64_t> passes) {
  const GpuConfig of_preset = of_one_gpu(preset);
  const GpuConfig* base = &of_preset;
  for (const auto& config : preset.configs)
    if (config.ranks <= ranks && config.ranks >= base->ranks) base = &config;
  const bool is_of_preset = base == &of_preset;
  const std::string name(base->name);
  const bool is_own = base->ranks == ranks && !is_of_preset && !passes;
  if (is_own)
    return run_config(
        *base,
        {"config", name,
         "auto: " + ranks_text(ranks) + (ranks == 1 ? " has its own" : " have their own")},
        "config " + name);
  const GpuConfig config = derived(*base, ranks, passes);
  return run_config(config,
                    {"config", ranks_text(ranks),
                     "auto: from " + (is_of_preset ? "preset " + name : name) + ": " +
                         change_text(*base, config)},
                    "config of " + ranks_text(ranks));
}

RunConfig by_name(const GpuConfig& base, int ranks, std::optional<std::int64_t> passes) {
  const std::string name(base.name);
  if (base.ranks == ranks && !passes)
    return run_config(base, {"config", name, "flag"}, "config " + name);
  const GpuConfig config = derived(base, ranks, passes);
  return run_config(
      config, {"config", name + " on " + ranks_text(ranks), "flag: " + change_text(base, config)},
      "config " + name);
}

std::string names_of(const Preset& preset) {
  std::string names;
  for (const auto& config : preset.configs) names += ", " + std::string(config.name);
  return names;
}

}  // namespace

Result<RunConfig> choose_config(const Preset& preset, const Flags& flags, int world_size) {
  const auto flag = flags.find("--config");
  const bool is_given = flag != flags.end();
  const std::string text = is_given ? flag->second : preset.configs.empty() ? "none" : "auto";
  const auto passes = given_accumulation(flags, world_size);
  if (text == "none") return without_config(preset, is_given ? "flag" : "default");
  if (text == "auto") return automatic(preset, world_size, passes);
  const auto named = std::ranges::find(preset.configs, text, &GpuConfig::name);
  if (named != preset.configs.end()) return by_name(*named, world_size, passes);
  return Error{.code = Code::invalid,
               .message = "is \"" + text + "\"; it must be auto, none" + names_of(preset) +
                          ", or a configuration file of accelerate (FILE.yaml)",
               .subject = "--config"};
}

}  // namespace tj::trainer
