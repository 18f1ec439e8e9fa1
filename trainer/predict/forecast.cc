#include "trainer/predict/forecast.h"

#include <nlohmann/json.hpp>

#include "trainer/predict/remedies.h"

namespace tj::trainer {
namespace {

constexpr int kStages = 4;

MemoryNeed need_at(const MemoryInputs& memory, int stage) {
  auto changed = memory;
  changed.zero_stage = stage;
  return memory_of(changed);
}

nlohmann::ordered_json json_of(const StepPrediction& step) {
  return {{"sent_bytes", step.sent_bytes},
          {"wire_seconds", step.wire_s},
          {"exposed_seconds", step.exposed_s},
          {"slowed_seconds", step.slowed_s},
          {"codec_seconds", step.codec_s},
          {"compute_seconds", step.compute_s},
          {"step_seconds", step.step_s()},
          {"efficiency", step.efficiency()},
          {"share_without_overlap", step.bare_share()}};
}

nlohmann::ordered_json json_of(const std::optional<ReduceChoice>& choice) {
  if (!choice) return nullptr;
  return {{"accumulation", choice->passes}, {"reduce", to_string(choice->codec)}};
}

nlohmann::ordered_json memory_json(const Forecast& forecast) {
  nlohmann::ordered_json parts, stages = nlohmann::ordered_json::array();
  for (const auto& part : forecast.memory.parts) parts[part.name] = part.bytes;
  for (const auto& need : forecast.memory_by_stage) stages.push_back(need.bytes());
  nlohmann::ordered_json memory{{"bytes", forecast.memory.bytes()},
                                {"with_activations", forecast.memory.is_whole},
                                {"parts", parts},
                                {"by_zero_stage", stages},
                                {"fits", forecast.fits},
                                {"shortage", shortage_text(forecast)}};
  if (forecast.inputs.room.bytes) memory["room_bytes"] = *forecast.inputs.room.bytes;
  if (!forecast.fits)
    memory["takes_less"] = takes_less_text(forecast.remedies, forecast.memory.bytes());
  for (const auto& remedy : forecast.remedies)
    memory["remedies"].push_back({{"flag", remedy.flag}, {"bytes", remedy.bytes}});
  return memory;
}

}  // namespace

Forecast forecast_of(ForecastInputs inputs) {
  Forecast forecast{.inputs = std::move(inputs)};
  auto& known = forecast.inputs;
  known.step.gradients = known.gradients;
  known.memory.gradients = known.gradients;
  forecast.own = {.passes = known.step.passes, .codec = known.step.reduction.codec};
  forecast.table = table_of(known.step, known.codec_rates);
  if (known.step.zero_stage > 0) forecast.own.codec = Codec::fp32;
  forecast.step = row_of(forecast.table, forecast.own).step;
  forecast.advice = advise(forecast.table, forecast.own, known.target);
  forecast.memory = memory_of(known.memory);
  for (int stage = 0; stage < (known.memory.ranks > 1 ? kStages : 1); ++stage)
    forecast.memory_by_stage.push_back(need_at(known.memory, stage));
  if (known.room.bytes) {
    known.memory_room.bytes = *known.room.bytes;
    forecast.fits = forecast.memory.bytes() <= *known.room.bytes;
    if (!forecast.fits) forecast.change = smallest_change(known.memory, known.memory_room);
  }
  return forecast;
}

nlohmann::ordered_json forecast_json(const Forecast& forecast) {
  const auto& inputs = forecast.inputs;
  auto table = nlohmann::ordered_json::array();
  for (const auto& row : forecast.table) {
    auto line = json_of(row.setting);
    line.update(json_of(row.step));
    table.push_back(std::move(line));
  }
  return {{"model", inputs.model},
          {"parameters", element_count(inputs.gradients)},
          {"ranks", inputs.step.ranks},
          {"batch_size", inputs.micro_batch * inputs.step.passes * inputs.step.ranks},
          {"setting", json_of(std::optional(forecast.own))},
          {"compute",
           {{"forward_seconds", inputs.step.compute.forward_s},
            {"backward_seconds", inputs.step.compute.backward_s},
            {"update_seconds", inputs.step.compute.update_s},
            {"from", inputs.compute_origin}}},
          {"link",
           {{"bytes_per_second", inputs.step.link.bytes_per_second},
            {"latency_seconds", inputs.step.link.latency_s},
            {"core_seconds_per_byte", inputs.step.link.core_s_per_byte},
            {"from", inputs.link_origin}}},
          {"step", json_of(forecast.step)},
          {"speed_up", forecast.speed_up()},
          {"run_seconds", forecast.run_s()},
          {"target", inputs.target},
          {"recommended", json_of(forecast.advice.setting)},
          {"by_consent", json_of(forecast.advice.by_consent)},
          {"table", std::move(table)},
          {"memory", memory_json(forecast)}};
}

}  // namespace tj::trainer
