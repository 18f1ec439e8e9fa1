// What a GPU can do at most, for the share of it that a run reaches. Pure.
#pragma once
#include <optional>
#include <string_view>

#include "trainer/workload/precision.h"

namespace tj::trainer {

/// 10^12 FLOP/s of dense matrix products, by the name that CUDA gives the device; none where this
/// trainer does not know it, or for float32, whose peak depends on how it is computed.
/// Source: NVIDIA's data sheets, without sparsity.
std::optional<double> peak_tflops_of(std::string_view device, Precision precision);

}  // namespace tj::trainer
