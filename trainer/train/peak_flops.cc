#include "trainer/train/peak_flops.h"

namespace tj::trainer {
namespace {

struct Peak {
  std::string_view part;  // of the name
  double tflops;
  bool has_bf16 = true;
};

constexpr Peak kPeaks[] = {
#include "trainer/train/peak_flops.inc"
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
