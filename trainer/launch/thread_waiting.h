// How long the engine's OpenMP threads look for work in a loop before they sleep. libgomp's own
// answer, milliseconds, is right where they have the cores to themselves. Where something else
// wants these, that time is taken from the very thread that is waited for
// (docs/trainer.md#threads).
#pragma once
#include <filesystem>
#include <string>

namespace tj::trainer {

struct CoreDemand {
  int runnable = 0;  // threads that run or want to, on the whole machine, this one among them
  int share = 1;     // cores that this process would use
  int cores = 1;     // of the machine
};

/// As it is at this moment, by `proc`; without a file that says it nobody else is runnable.
CoreDemand core_demand(const std::filesystem::path& proc = "/proc");

/// Do others want the cores that this process would use?
bool are_cores_wanted(const CoreDemand& demand);

/// For a program that is executed next, unless the user has said how threads are to wait.
void let_threads_sleep_soon();

}  // namespace tj::trainer
