#include "trainer/train/peak_flops.h"

namespace tj::trainer {
namespace {

struct Peak {
  std::string_view part;  // of the name
  double tflops;
  bool has_bf16 = true;
};

/// The first whose part the name has.
constexpr Peak kPeaks[] = {
    {"B200", 2250}, {"H200", 989},      {"H100 PCIe", 756},  {"H100 NVL", 835},
    {"H100", 989},  {"H800 PCIe", 756}, {"H800", 989},       {"A100", 312},
    {"A800", 312},  {"L40S", 362},      {"NVIDIA L4,", 121}, {"V100", 125, /*has_bf16=*/false},
};

}  // namespace

std::optional<double> peak_tflops_of(std::string_view device, Precision precision) {
  if (precision == Precision::fp32) return std::nullopt;
  for (const auto& peak : kPeaks) {
    if (device.find(peak.part) == std::string_view::npos) continue;
    if (precision == Precision::bf16 && !peak.has_bf16) return std::nullopt;
    return peak.tflops;
  }
  return std::nullopt;
}

}  // namespace tj::trainer
