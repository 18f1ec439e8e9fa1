// The one precompiled header of all units that speak torch: half a minute each without it.
#pragma once
#include <torch/torch.h>
