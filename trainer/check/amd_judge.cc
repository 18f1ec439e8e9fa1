// What GPUs of AMD mean for a training: that it does not use them, and what may be done instead.
#include "trainer/check/machine.h"

namespace tj::trainer {

std::vector<Finding> judge_amd_gpus(std::optional<int> amd, int visible) {
  if (!amd) return {};
  const std::string place = visible == 0 ? "the CPU" : "those of NVIDIA";
  return {{Severity::warn,
           "AMD GPUs",
           amd_gpus_text(*amd) + " (/dev/kfd)",
           std::string(kNoRocm) + ": training is on " + place +
               "; docs/launching.md, GPUs of AMD, says what it would take",
           {}}};
}

}  // namespace tj::trainer
