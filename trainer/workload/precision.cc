#include "trainer/workload/precision.h"

namespace tj::trainer {

const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::fp32: return "fp32";
    case Precision::bf16: return "bf16";
    case Precision::fp16: return "fp16";
  }
  return "";
}

std::optional<Precision> precision_from(std::string_view name) {
  for (const auto precision : {Precision::fp32, Precision::bf16, Precision::fp16})
    if (name == to_string(precision)) return precision;
  return std::nullopt;
}

}  // namespace tj::trainer
