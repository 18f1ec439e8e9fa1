#include "trainer/train/start_table.h"

#include <cstdio>
#include <filesystem>

#include "trainer/checkpoint/folder.h"
#include "trainer/train/batch_reader.h"

namespace tj::trainer {
namespace {

std::string epochs_text(const TrainPlan& plan, std::int64_t epoch_samples) {
  const std::int64_t samples = plan.batch_size * plan.schedule.steps;
  char text[32];
  std::snprintf(text, sizeof text, "%.2f",
                static_cast<double>(samples) / static_cast<double>(epoch_samples));
  return text;
}

void add_data_rows(std::vector<Setting>& rows, const TrainPlan& plan, const Workload& workload,
                   const SampleSource& source) {
  const SampleWords words = workload.words();
  const std::int64_t epoch = source.sample_count();
  const bool has_units = !words.units_origin.empty();
  rows.push_back(
      {"samples per epoch", grouped(epoch),
       has_units ? "computed: " + words.unit.name + " / " + words.units_origin : "computed"});
  if (has_units) {
    rows.push_back({words.unit.name + " per step", grouped(plan.batch_size * words.units),
                    "computed: batch-size x " + words.units_origin});
  }
  if (plan.epochs == 0) {
    rows.push_back(
        {"epochs", epochs_text(plan, epoch), "computed: steps x batch-size / samples per epoch"});
  }
  const std::int64_t ahead = plan.data_threads * kBatchesAheadPerThread;
  rows.push_back({"read ahead",
                  grouped(ahead * plan.micro_batch * workload.cost().bytes) + " bytes",
                  "computed: data-threads x " + std::to_string(kBatchesAheadPerThread) +
                      " x micro-batch x bytes of a sample"});
}

}  // namespace

std::vector<Setting> start_table(const TrainPlan& plan, const Workload& workload,
                                 const SampleSource& source, const ProcessEnv& env) {
  auto rows = plan.settings;
  add_data_rows(rows, plan, workload, source);
  rows.push_back({"rank", std::to_string(env.rank), env.origin});
  if (env.world_size > 1)
    rows.push_back({"master", env.master_addr + ":" + std::to_string(env.master_port), env.origin});
  rows.push_back({"attempt", std::to_string(env.attempt), env.origin});
  rows.push_back({"checkpoints",
                  (std::filesystem::path(plan.out) / checkpoint_name(plan.schedule.steps)).string(),
                  plan.save_every > 0 ? "computed: each " + std::to_string(plan.save_every) +
                                            " steps and at the end"
                                      : "computed: at the end"});
  return rows;
}

}  // namespace tj::trainer
