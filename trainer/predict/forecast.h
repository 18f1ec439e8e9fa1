// All that `trainer plan` says of a training before it begins: traffic, time, memory and advice.
// Pure.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/predict/advice.h"
#include "trainer/predict/memory.h"

namespace tj::trainer {

/// What is known, and from where: for people.
struct ForecastInputs {
  std::string model = {};
  std::int64_t micro_batch = 1;  // samples of a pass
  std::int64_t steps = 0;        // optimizer steps of the run
  std::int64_t units_of_sample = 1;
  std::string unit = "samples";
  StepInputs step = {};                  // its gradients are the ones below
  std::vector<Gradient> gradients = {};  // in the order in which backward completes them
  CodecRates codec_rates = {};
  double target = 0.9;  // efficiency
  MemoryInputs memory = {};
  MemoryRoom memory_room = {};  // without its bytes
  RankRoom room = {};
  std::string compute_origin = {};      // "--step-seconds", "measured here"
  std::string link_origin = {};         // "--link 117MB/s"
  std::string activations_origin = {};  // "measured here", or why they are not known
};

struct Forecast {
  ForecastInputs inputs = {};
  std::vector<TableRow> table = {};
  ReduceChoice own = {};
  StepPrediction step = {};  // of the run as it is asked for
  Advice advice = {};
  MemoryNeed memory = {};
  std::vector<MemoryNeed> memory_by_stage = {};  // of ZeRO, from 0; one without other ranks
  bool fits = true;                              // as far as is known
  std::optional<MemoryChange> change = {};       // where it does not
  std::vector<Remedy> remedies = {};             // then, each by itself

  double run_s() const { return step.step_s() * static_cast<double>(inputs.steps); }
  double speed_up() const { return step.efficiency() * inputs.step.ranks; }
};

Forecast forecast_of(ForecastInputs inputs);

/// Tables for people.
std::string forecast_text(const Forecast& forecast);
nlohmann::ordered_json forecast_json(const Forecast& forecast);
/// An SVG: efficiency over passes, a line for each codec.
std::string forecast_picture(const Forecast& forecast);

/// What memory is short of, in one sentence, and what to change; empty where it fits.
std::string shortage_text(const Forecast& forecast);

/// "1.72 s", "12 ms", "3.4 min", "5.1 h"
std::string seconds_text(double seconds);
/// "201 MB", "1.7 GB": powers of 1000.
std::string bytes_text(double bytes);

}  // namespace tj::trainer
