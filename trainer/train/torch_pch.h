// The one precompiled header of all units that speak torch. Not <torch/torch.h>: GCC instantiates
// what a precompiled header has pending in each unit again, five seconds of it for all of torch's
// front end, one and a half for its tensors.
#pragma once
#include <torch/types.h>
