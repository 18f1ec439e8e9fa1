// Everything a run does, decided before it starts: flags, presets and the number of ranks become
// one TrainPlan. Pure.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/comm/accelerator.h"
#include "trainer/comm/reduce_options.h"
#include "trainer/report/progress.h"
#include "trainer/train/schedule.h"
#include "trainer/train/sync_plan.h"
#include "trainer/train/zero/zero_schedule.h"
#include "trainer/values/process_env.h"
#include "trainer/values/settings.h"
#include "trainer/watch/limits.h"
#include "trainer/workload/lora_tensors.h"
#include "trainer/workload/precision.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

struct TrainPlan {
  std::string model_name;
  std::vector<std::string> data;
  std::vector<std::string> eval_data;  // empty: no evaluation
  bool is_eval_chosen = false;         // by --eval-data, which may be none; else the data says it
  std::int64_t eval_every = 0;         // 0: at the end only
  std::int64_t eval_batches = 0;       // of --batch-size samples
  int data_threads = 1;
  std::string out;
  std::int64_t batch_size = 0;  // samples per optimizer step, over all ranks
  std::int64_t accumulation = 1;
  std::int64_t micro_batch = 0;      // samples of one rank in one pass
  Schedule schedule;                 // with `epochs`, no steps until settle_length()
  double epochs = 0;                 // passes over the data that make the steps; 0: --steps does
  bool is_warmup_of_epochs = false;  // the warm-up follows from the steps, when they are known
  UpdateRule rule{.weight_decay = 0.1};  // of tensors that no group says otherwise of
  std::vector<ParameterGroup> groups;
  std::vector<std::string> freeze;  // patterns on the names of tensors that are not to be trained
  LoraOptions lora;                 // in place of it
  double grad_clip = 1;             // 0: none
  double ema_decay = 0;             // 0: no averages
  DeviceChoice device = DeviceChoice::automatic;
  std::optional<int> gpu;  // CUDA's index, settled by the engine; absent: the CPU
  Precision precision = Precision::fp32;
  bool adds_in_order = false;  // on a GPU: the same bits each time, not the fastest
  bool recompute = false;
  ZeroOptions zero;
  SyncPlan sync;
  ReduceOptions reduce;
  std::int64_t logical_shards = 0;  // > 0: deterministic, with so many in a batch
  int threads = 0;                  // 0: this process's share of the cores
  std::uint64_t seed = 0;
  std::int64_t save_every = 0;  // 0: at the end only
  std::int64_t keep = 0;        // 0: all
  std::int64_t keep_every = 0;  // 0: none is kept for ever
  bool resume = false;
  std::string init_from;  // empty: initial weights from the seed
  std::int64_t log_every = 1;
  LogStyle log_style = LogStyle::trainer;
  std::string tensorboard;           // folder of event files; empty: none
  std::string log_dir;               // folder of a log of each rank; empty: none
  std::optional<int> progress_port;  // 0: none; absent: the default of a job, none elsewhere
  double peak_tflops = 0;            // of each rank's device; 0: not known
  bool is_precision_given = false;   // by a flag
  Precision gpu_precision = Precision::bf16;  // where none is given
  std::string gpu_precision_origin;
  Setting config;  // which configuration by the number of ranks, and why
  std::chrono::seconds rendezvous_timeout{0};
  Limits limits;
  std::vector<Setting> settings;   // the rows of the start-up table so far
  std::vector<std::string> notes;  // lines to be said before it
};

/// Configures `workload`, too. Fails with Code::invalid; the error names the flag, its value and
/// what is right.
Result<TrainPlan> make_plan(const Flags& flags, int world_size, const Preset& preset,
                            Workload& workload);

/// Completes the plan by what the workload says once its data is open. Fails with Code::invalid
/// when a pattern of a flag matches no tensor of the model, or the model can't be trained in this
/// way.
Result<void> settle_model(TrainPlan& plan, const Workload& workload);

/// Completes the plan by what --data has held out, where --eval-data says nothing. Needs open data.
/// Fails with Code::invalid for flags of an evaluation that there is none of.
Result<void> settle_evaluation(TrainPlan& plan, const Workload& workload);

/// One rule for each of tensors_of(), by the workload's groups and those of the plan.
Result<std::vector<UpdateRule>> update_rules_of(const TrainPlan& plan, const Workload& workload);

/// Completes the plan by the GPU that was found, or by none: on one the passes are in the
/// precision of the configuration, bf16, unless a flag says otherwise. Fails with Code::invalid for
/// what has been shown on the CPU only.
Result<void> settle_device(TrainPlan& plan, const Accelerator& accelerator);

/// On a platform the log is in a platform's words unless a flag says otherwise.
void settle_log_style(TrainPlan& plan, const ProcessEnv& env);

}  // namespace tj::trainer
