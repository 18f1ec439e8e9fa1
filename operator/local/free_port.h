// A TCP port for MASTER_PORT on this machine.
#pragma once
#include "contract/result.h"

namespace tj {

/// A port that nobody listens on now. It lies below the range from which the kernel gives out ports
/// by itself, where it could be given to an outgoing connection before the master binds it; only if
/// all tries fail the kernel chooses.
Result<int> choose_free_port();

}  // namespace tj
