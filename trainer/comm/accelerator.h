// The GPU that this process trains on, if it has one, and in words why if it has none.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "contract/result.h"
#include "trainer/comm/nccl_loader.h"

namespace tj::trainer {

/// --device
enum class DeviceChoice {
  automatic,  // a GPU where one is visible and usable
  cpu,
  cuda,  // a GPU, or no run at all
};

/// "auto", "cpu", "cuda"; absent for any other word.
std::optional<DeviceChoice> device_choice_from(std::string_view word);

struct Accelerator {
  const NcclPlugin* plugin = nullptr;  // null: the CPU
  int device = 0;                      // CUDA's index, among the visible ones
  std::string text;  // "NVIDIA H200, NCCL 2.28.9", or why there is none: "no GPU is visible"
  std::string card;  // equal for two processes on the same GPU; empty: the CPU

  std::optional<int> gpu() const {
    return plugin == nullptr ? std::nullopt : std::optional(device);
  }
};

struct AcceleratorRequest {
  DeviceChoice choice = DeviceChoice::automatic;
  int visible_gpus = 0;
  std::optional<int> amd_gpus = {};  // which it can't use; 0: not known how many
  int local_rank = 0;
  int local_world_size = 1;
  NcclPlace place;
};

/// Must come before anything asks libtorch for a device, because it looks for CUDA only once. Fails
/// with Code::invalid where --device cuda can't be had, or, on all ranks of the worker alike, where
/// one of them has no GPU of its own.
Result<Accelerator> find_accelerator(const AcceleratorRequest& request);

}  // namespace tj::trainer
