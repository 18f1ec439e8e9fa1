#include "trainer/train/run_length.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace tj::trainer {
namespace {

constexpr std::int64_t kWarmupStepsMax = 2000;  // nanoGPT: train.py
constexpr double kEpochsMax = 1e6;
constexpr const char* kNotCounted = "not known before the data is";

std::string epochs_text(double epochs) {
  return number_text(epochs) + (epochs == 1 ? " epoch" : " epochs");
}

Setting warmup_row(std::int64_t steps) {
  return {"warmup-steps", std::to_string(std::min(kWarmupStepsMax, steps / 10)),
          "computed: steps / 10, at most 2000"};
}

void put(std::vector<Setting>& rows, Setting row) {
  const auto place = std::ranges::find(rows, row.name, &Setting::name);
  if (place == rows.end()) {
    rows.push_back(std::move(row));
  } else {
    *place = std::move(row);
  }
}

}  // namespace

Result<std::int64_t> steps_of_epochs(double epochs, std::int64_t sample_count,
                                     std::int64_t batch_size) {
  constexpr double kRounding = 1e-13;  // so little beyond a whole number is the division's own
  const double exact = epochs * static_cast<double>(sample_count) / static_cast<double>(batch_size);
  const double steps = std::max(1.0, std::ceil(exact * (1 - kRounding)));
  if (steps <= static_cast<double>(kCountMax)) return static_cast<std::int64_t>(steps);
  return Error{.code = Code::invalid,
               .message = "is " + number_text(epochs) + ", and these are more than " +
                          grouped(kCountMax) + " steps of " + grouped(batch_size) +
                          " samples: " + grouped(sample_count) + " are in --data",
               .subject = "--epochs"};
}

void read_length(FlagReader& reader, const Preset& preset, TrainPlan& plan) {
  if (!reader.is_given("--epochs")) {
    plan.schedule.steps = reader.whole(
        "--steps", {std::to_string(preset.steps), "preset " + plan.model_name}, {1, kCountMax});
    return;
  }
  plan.epochs =
      reader.real("--epochs", {"1"}, {std::numeric_limits<double>::denorm_min(), kEpochsMax},
                  "it must be a number greater than 0, at most 1000000");
  if (reader.is_given("--steps")) {
    reader.fail("--epochs", reader.given("--epochs"),
                "--steps " + reader.given("--steps") +
                    " says how long the run is, too; one of the two must go");
  }
  reader.note("steps", kNotCounted, "--epochs");
}

void read_warmup(FlagReader& reader, TrainPlan& plan) {
  constexpr const char* kFlag = "--warmup-steps";
  const bool is_given = reader.is_given(kFlag);
  plan.is_warmup_of_epochs = plan.epochs > 0 && !is_given;
  const Setting row = warmup_row(plan.schedule.steps);
  plan.schedule.warmup_steps = reader.whole(kFlag, {row.value, row.origin}, {0, kCountMax});
}

Result<void> settle_length(TrainPlan& plan, std::int64_t sample_count) {
  if (plan.epochs == 0) return {};
  const auto steps = steps_of_epochs(plan.epochs, sample_count, plan.batch_size);
  if (!steps) return steps.error();
  plan.schedule.steps = *steps;
  put(plan.settings, {"steps", std::to_string(*steps),
                      "computed: " + epochs_text(plan.epochs) + " of " + grouped(sample_count) +
                          " samples / " + grouped(plan.batch_size)});
  if (!plan.is_warmup_of_epochs) return {};
  const Setting row = warmup_row(*steps);
  plan.schedule.warmup_steps = std::min(kWarmupStepsMax, *steps / 10);
  put(plan.settings, row);
  return {};
}

}  // namespace tj::trainer
