// How much memory a rank may take here.
#pragma once
#include <optional>
#include <string>

#include "trainer/predict/memory.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {

struct RankPlace {
  std::optional<int> gpu = {};  // CUDA's index; absent: the CPU
  std::string gpu_name = {};
  const ProcessEnv& env;
  double process_bytes = 0;  // that it has already, and that are a part of what a rank needs
};
/// Of a GPU that is not known nothing.
RankRoom rank_room(const RankPlace& place);

/// This process's limit (ulimit -v); absent: there is none.
std::optional<double> address_space_bytes();

/// What this process may still take of the machine, or of its control group.
double free_bytes(const ProcessEnv& env);

}  // namespace tj::trainer
