#include "trainer/comm/accelerator.h"

#include "trainer/comm/nccl_words.h"
#include "trainer/launch/host.h"

namespace tj::trainer {
namespace {

Error no_gpu(const std::string& why) {
  return {.code = Code::invalid,
          .message = "is cuda, but " + why + "; --device auto would train on the CPU",
          .subject = "--device"};
}

std::string visible(int gpus) {
  return gpus == 1 ? "a GPU is visible" : std::to_string(gpus) + " GPUs are visible";
}

std::string no_gpu_is_visible(std::optional<int> amd) {
  if (!amd) return "no GPU is visible";
  return "no GPU of NVIDIA is visible; there are " + amd_gpus_text(*amd) + " (/dev/kfd), but " +
         kNoRocm;
}

/// Of one GPU nobody can tell here: some launchers show each process only its own. Ranks that share
/// it are found when they meet (Peers::describe_shared_gpu).
bool are_too_few(int gpus, int local_world_size) { return gpus > 1 && local_world_size > gpus; }

Error too_few(int gpus, int local_world_size) {
  return {.code = Code::invalid,
          .message = "is " + std::to_string(local_world_size) + " where " + visible(gpus) +
                     "; NCCL needs a GPU for each rank: at most " + std::to_string(gpus) +
                     " ranks (trainer launch --nproc), or --device cpu",
          .subject = "LOCAL_WORLD_SIZE"};
}

}  // namespace

std::optional<DeviceChoice> device_choice_from(std::string_view word) {
  if (word == "auto") return DeviceChoice::automatic;
  if (word == "cpu") return DeviceChoice::cpu;
  if (word == "cuda") return DeviceChoice::cuda;
  return std::nullopt;
}

Result<Accelerator> find_accelerator(const AcceleratorRequest& request) {
  const bool is_asked = request.choice == DeviceChoice::cuda;
  const int gpus = request.visible_gpus;
  const auto none = [&](const std::string& why) -> Result<Accelerator> {
    if (is_asked) return no_gpu(why);
    return Accelerator{.text = why};
  };
  if (request.choice == DeviceChoice::cpu) return Accelerator{.text = "--device cpu"};
  if (gpus == 0) return none(no_gpu_is_visible(request.amd_gpus));
  if (are_too_few(gpus, request.local_world_size)) return too_few(gpus, request.local_world_size);
  const auto plugin = load_nccl_plugin(request.place);
  if (!plugin) return none(visible(gpus) + ", but " + plugin.error().message);
  const int device = gpus == 1 ? 0 : request.local_rank;
  PluginText text, card;
  if (!(*plugin)->use_device(device, &text, &card))
    return none(visible(gpus) + ", but it can't be used: " + describe(nccl_words(text.bytes)));
  return Accelerator{.plugin = *plugin, .device = device, .text = text.bytes, .card = card.bytes};
}

}  // namespace tj::trainer
