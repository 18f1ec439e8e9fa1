// Writes a forecast for people: rows, the table of settings, memory, GPUs.
#include <cmath>
#include <cstdio>
#include <map>

#include "trainer/predict/forecast.h"
#include "trainer/predict/remedies.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

constexpr int kNameWidth = 14;

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string percent(double share) { return format("%.0f %%", 100 * share); }

std::string row(const std::string& name, const std::string& words) {
  return format("%-*s", kNameWidth, name.c_str()) + words + "\n";
}

std::string number_and_unit(double value, const char* unit) {
  return format(value < 10 ? "%.1f" : "%.0f", value) + " " + unit;
}

/// "2" of speed-ups, without a zero behind.
std::string times(double value) { return format("%.2f", value); }

std::string what_is_trained(const Forecast& forecast) {
  const auto& inputs = forecast.inputs;
  const auto& step = inputs.step;
  const std::int64_t batch = inputs.micro_batch * step.passes * step.ranks;
  std::string samples = grouped(batch) + " samples a step";
  if (inputs.unit != "samples")
    samples += ", " + grouped(batch * inputs.units_of_sample) + " " + inputs.unit;
  return row("model", inputs.model + " | " + grouped(element_count(inputs.gradients)) +
                          " parameters in " + std::to_string(inputs.gradients.size()) +
                          " tensors") +
         row("ranks", std::to_string(step.ranks) + " | each " + std::to_string(step.passes) +
                          " x " + std::to_string(inputs.micro_batch) + " samples | " + samples) +
         row("compute", seconds_text(step.compute.of_step(step.passes)) +
                            " a step: " + std::to_string(step.passes) + " x (forward " +
                            seconds_text(step.compute.forward_s) + " + backward " +
                            seconds_text(step.compute.backward_s) + ") + update " +
                            seconds_text(step.compute.update_s) + " | " + inputs.compute_origin);
}

std::string zero_text(const StepInputs& step) {
  const std::string stage = "--zero " + std::to_string(step.zero_stage);
  return step.zero_group ? stage + " --zero-group " + std::to_string(*step.zero_group) : stage;
}

std::string traffic_text(const Forecast& forecast) {
  const auto& inputs = forecast.inputs;
  const auto& step = forecast.step;
  if (inputs.step.ranks == 1) return row("on the wire", "nothing: a single rank");
  const std::string form = inputs.step.zero_stage > 0 ? zero_text(inputs.step)
                                                      : std::string(to_string(forecast.own.codec));
  return row("link", bytes_text(inputs.step.link.bytes_per_second) + "/s each way, " +
                         seconds_text(inputs.step.link.latency_s) + " one way | " +
                         inputs.link_origin) +
         row("on the wire", bytes_text(step.sent_bytes) + " a step from each rank in " + form +
                                ", as many to it at the same time") +
         (step.frozen_bytes > 0
              ? row("", bytes_text(step.frozen_bytes) + " of them gather frozen weights")
              : "") +
         row("", seconds_text(step.wire_s) + " of the wire's time: " + percent(step.bare_share()) +
                     " of a step in which nothing is hidden") +
         row("", seconds_text(std::max(0.0, step.wire_s - step.exposed_s)) +
                     " hidden behind backward, " + seconds_text(step.exposed_s) + " exposed") +
         (step.slowed_s > 0
              ? row("", seconds_text(step.slowed_s) +
                            " that computing takes longer: its core serves the wire, too")
              : "") +
         (step.codec_s > 0 ? row("", seconds_text(step.codec_s) + " to pack and unpack") : "");
}

std::string time_text(const Forecast& forecast) {
  const auto& inputs = forecast.inputs;
  return row("step", seconds_text(forecast.step.step_s()) + " | efficiency " +
                         percent(forecast.step.efficiency()) + " | " + times(forecast.speed_up()) +
                         " x one rank") +
         row("run", grouped(inputs.steps) + " steps in " + seconds_text(forecast.run_s()));
}

std::string table_text(const Forecast& forecast) {
  std::string heading = format("%-8s%10s", "passes", "batch"), text;
  std::int64_t passes = 0;
  const auto& inputs = forecast.inputs;
  for (const auto& line : forecast.table) {
    if (line.setting.passes != passes) {
      passes = line.setting.passes;
      const bool is_own = passes == forecast.own.passes;
      text += (text.empty() ? "" : "\n") +
              format("%-8s%10s", (std::to_string(passes) + (is_own ? " *" : "")).c_str(),
                     grouped(inputs.micro_batch * passes * inputs.step.ranks).c_str());
    }
    if (passes == forecast.table.front().setting.passes)
      heading += format("%10s", to_string(line.setting.codec));
    text += format("%10s", percent(line.step.efficiency()).c_str());
  }
  return "efficiency by passes in a step (--accumulation; *: this run) and codec (--reduce)\n" +
         heading + "\n" + text + "\n";
}

std::string choice_text(const Forecast& forecast, const ReduceChoice& choice) {
  std::string text = std::string("--reduce ") + to_string(choice.codec);
  if (choice.passes != forecast.own.passes)
    text +=
        " --accumulation " + std::to_string(choice.passes) + " --batch-size " +
        std::to_string(forecast.inputs.micro_batch * choice.passes * forecast.inputs.step.ranks);
  const auto& step = row_of(forecast.table, choice).step;
  return text + " | efficiency " + percent(step.efficiency()) + ", " +
         times(step.efficiency() * forecast.inputs.step.ranks) + " x one rank";
}

std::string advice_text(const Forecast& forecast) {
  const auto& advice = forecast.advice;
  const std::string name = "for " + percent(forecast.inputs.target);
  std::string text = advice.setting
                         ? row(name, choice_text(forecast, *advice.setting) + " | " + advice.why)
                         : row(name,
                               "no setting of the table reaches it without a change of the "
                               "optimisation");
  if (advice.by_consent)
    text += row("by consent",
                choice_text(forecast, *advice.by_consent) + " | changes the optimisation itself");
  if (!advice.setting && !advice.by_consent)
    text += row("by consent", "local steps (--sync local or diloco): change the optimisation");
  return text;
}

/// As a rank on a GPU has it, whatever is here.
MemoryInputs on_a_gpu(MemoryInputs memory) {
  constexpr double kContextBytes = 6e8;
  memory.saves_here = false;  // the copy goes to the host
  memory.process_bytes = kContextBytes;
  memory.scratch_bytes = 0;
  return memory;
}

/// Kinds that need as many, in one line.
std::string gpus_text(const Forecast& forecast) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  std::map<std::pair<int, int>, std::string> names;  // by ranks and stage
  const auto memory = on_a_gpu(forecast.inputs.memory);
  for (const auto& kind : gpu_kinds()) {
    const auto count = gpus_needed(memory, kind.memory_bytes);
    auto& line = names[count ? std::pair(count->ranks, count->zero_stage) : std::pair(0, 0)];
    line += (line.empty() ? "" : ", ") + std::string(kind.name) +
            format(" (%.0f GiB)", kind.memory_bytes / kGib);
  }
  std::string text = "GPUs that hold it, with as many samples in a pass";
  text += forecast.memory.is_whole ? "\n" : ", but for activations\n";
  for (const auto& [needed, kinds] : names) {
    const auto [ranks, stage] = needed;
    text += row(ranks == 0 ? "  none"
                           : "  " + std::to_string(ranks) +
                                 (stage > 0 ? " --zero " + std::to_string(stage) : ""),
                kinds);
  }
  return text;
}

std::string what_fits(const Forecast& forecast) {
  if (forecast.change) return forecast.change->text + " fits";
  for (const auto& remedy : forecast.remedies)
    if (remedy.bytes <= forecast.inputs.room.bytes.value_or(0)) return remedy.flag + " fits";
  const int ranks = forecast.inputs.memory.ranks;
  return "no stage of ZeRO and no smaller pass makes it fit on " + std::to_string(ranks) +
         (ranks == 1 ? " rank" : " ranks");
}

std::string memory_text(const Forecast& forecast) {
  const auto& inputs = forecast.inputs;
  std::string text = "memory of one rank\n";
  for (const auto& part : forecast.memory.parts)
    text += format("  %-22s%10s\n", part.name.c_str(), bytes_text(part.bytes).c_str());
  text += format("  %-22s%10s", "all", bytes_text(forecast.memory.bytes()).c_str());
  if (inputs.room.bytes) text += " of " + bytes_text(*inputs.room.bytes) + " " + inputs.room.origin;
  text += "\n  activations: " + inputs.activations_origin + "\n";
  if (forecast.memory_by_stage.size() > 1) {
    text += "  by --zero:";
    for (std::size_t stage = 0; stage < forecast.memory_by_stage.size(); ++stage)
      text += (stage == 0 ? " " : " | ") + std::to_string(stage) + ": " +
              bytes_text(forecast.memory_by_stage[stage].bytes());
    text += "\n";
  }
  const auto shortage = shortage_text(forecast);
  if (shortage.empty()) return text;
  text += "  does not fit: " + shortage + "\n";
  const auto less = takes_less_text(forecast.remedies, forecast.memory.bytes());
  return less.empty() ? text : text + "  takes less: " + less + "\n";
}

}  // namespace

std::string seconds_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86'400;
  if (seconds < 1e-3) return format("%.3g ms", seconds * 1e3);
  if (seconds < 0.01) return number_and_unit(seconds * 1e3, "ms");
  if (seconds < 2 * kMinute) return format("%.2f s", seconds);
  if (seconds < 2 * kHour) return number_and_unit(seconds / kMinute, "min");
  if (seconds < 2 * kDay) return number_and_unit(seconds / kHour, "h");
  return number_and_unit(seconds / kDay, "days");
}

std::string bytes_text(double bytes) {
  if (bytes < 1e3) return format("%.0f bytes", bytes);
  if (bytes < 1e6) return number_and_unit(bytes / 1e3, "kB");
  if (bytes < 1e9) return number_and_unit(bytes / 1e6, "MB");
  if (bytes < 1e12) return number_and_unit(bytes / 1e9, "GB");
  return number_and_unit(bytes / 1e12, "TB");
}

std::string shortage_text(const Forecast& forecast) {
  const auto& room = forecast.inputs.room;
  if (forecast.fits) return "";
  return "a rank needs " + bytes_text(forecast.memory.bytes()) +
         (forecast.memory.is_whole ? "" : " and its activations") + ", and has " +
         bytes_text(room.bytes.value_or(0)) + " " + room.origin + "; " + what_fits(forecast);
}

std::string forecast_text(const Forecast& forecast) {
  std::string text = what_is_trained(forecast) + traffic_text(forecast) + time_text(forecast);
  if (forecast.inputs.step.ranks > 1) text += "\n" + table_text(forecast) + advice_text(forecast);
  text += "\n" + memory_text(forecast);
  return text + "\n" + gpus_text(forecast);
}

}  // namespace tj::trainer
