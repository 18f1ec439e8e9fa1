#include "trainer/train/process_setup.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <algorithm>
#include <new>

#include "contract/launch_env.h"
#include "trainer/launch/host.h"
#include "trainer/train/rank_room.h"

namespace tj::trainer {

Result<Accelerator> accelerator_for(DeviceChoice choice, const ProcessEnv& env) {
  const bool needs_gpu = choice != DeviceChoice::cpu;
  if (const auto named = check_visible_gpus(process_env); !named && needs_gpu) return named.error();
  return find_accelerator({.choice = choice,
                           .visible_gpus = visible_gpus(process_env),
                           .amd_gpus = amd_gpus(),
                           .local_rank = env.local_rank,
                           .local_world_size = env.local_world_size,
                           .place = {.plugin = default_nccl_plugin(), .libtorch = TORCH_VERSION}});
}

std::optional<Setting> choose_threads(int asked, const ProcessEnv& env) {
  if (asked > 0) {
    at::set_num_threads(asked);
    return std::nullopt;
  }
  if (process_env("OMP_NUM_THREADS")) {
    return Setting{"threads", std::to_string(at::get_num_threads()), "environment OMP_NUM_THREADS"};
  }
  const int cores = usable_cores();
  at::set_num_threads(std::max(1, cores / env.local_world_size));
  return Setting{"threads", std::to_string(at::get_num_threads()),
                 "computed: " + std::to_string(cores) + " usable cores / " +
                     std::to_string(env.local_world_size) + " local ranks"};
}

bool is_out_of_memory(const std::exception& exception, std::string_view told) {
  return dynamic_cast<const std::bad_alloc*>(&exception) != nullptr ||
         told.find("can't allocate memory") != std::string_view::npos ||
         told.find("out of memory") != std::string_view::npos ||
         (is_refused_thread(exception) && address_space_bytes());
}

Failure failure_of(const std::exception& exception) {
  const std::string what = cause_of(exception);
  if (!is_out_of_memory(exception, what)) return {.message = what};
  return {.reason = "OutOfMemory", .message = "out of memory: " + what};
}

}  // namespace tj::trainer
