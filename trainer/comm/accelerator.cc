#include "trainer/comm/accelerator.h"

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
  if (gpus == 0) return none("no GPU is visible");
  // Some launchers show each process only its own.
  const int device = gpus == 1 ? 0 : request.local_rank;
  if (device >= gpus) {
    return Error{.code = Code::invalid,
                 .message = "is " + std::to_string(device) + " where " + visible(gpus) +
                            "; each process needs a GPU of its own, or --device cpu",
                 .subject = "LOCAL_RANK"};
  }
  const auto plugin = load_nccl_plugin(request.place);
  if (!plugin) return none(visible(gpus) + ", but " + plugin.error().message);
  NcclText text;
  if (!(*plugin)->use_device(device, &text))
    return none(visible(gpus) + ", but it can't be used: " + text.bytes);
  return Accelerator{.plugin = *plugin, .device = device, .text = text.bytes};
}

}  // namespace tj::trainer
