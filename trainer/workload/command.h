// What a workload can do beside training: `trainer encode`, for example. A name, flags and a
// function; the engine finds the workload, reads the flags that all commands have, and tells how it
// ended. Its name stands in trainer/launch/engine_commands.h, too.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "trainer/values/failure.h"
#include "trainer/workload/flag.h"
#include "trainer/workload/precision.h"

namespace tj::trainer {

/// What was asked for.
struct CommandCall {
  const Flags& flags;           // the command's own, and --model where it was given
  std::optional<int> gpu = {};  // CUDA's index; absent: the CPU
  Precision precision = Precision::fp32;
};

struct WorkloadCommand {
  std::string_view name;        // as in `trainer NAME`
  const char* title;            // what it does, for people
  std::span<const Flag> flags;  // the engine adds --model, --device, --precision and --threads
  /// Absent: it is done. A stop (process/stop_request.h) is its to look for. Gradients are off.
  std::optional<Failure> (*run)(const CommandCall& call);
  /// Standard output is its result alone: what the engine says goes to standard error.
  bool prints_result = false;
};

}  // namespace tj::trainer
