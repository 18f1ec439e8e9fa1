// What every command of the engine settles for its process in the same way: the accelerator, the
// threads, and what it means when a library throws. Includes torch in its source alone.
#pragma once
#include <exception>
#include <optional>
#include <string_view>

#include "trainer/comm/accelerator.h"
#include "trainer/values/failure.h"
#include "trainer/values/process_env.h"
#include "trainer/values/settings.h"

namespace tj::trainer {

/// The GPU of this process by its place among the local ranks, or the CPU.
Result<Accelerator> accelerator_for(DeviceChoice choice, const ProcessEnv& env);

/// `asked` is --threads; 0: not given. OpenMP reads its own variable; without it a process takes
/// its share of the cores, not all of the machine's. The row of the table, but for a flag, which
/// has its own.
std::optional<Setting> choose_threads(int asked, const ProcessEnv& env);

/// `told` is what a person reads of it: NCCL's last warning may say it, which is not in the first
/// line of what c10d throws. A thread that can't be started is one where addresses are limited: its
/// stack takes some.
bool is_out_of_memory(const std::exception& exception, std::string_view told);
/// What a library threw.
Failure failure_of(const std::exception& exception);

}  // namespace tj::trainer
