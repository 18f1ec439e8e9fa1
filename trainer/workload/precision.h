// What matrix products are computed in; weights, norms and losses stay float32.
#pragma once
#include <optional>
#include <string_view>

namespace tj::trainer {

enum class Precision { fp32, bf16, fp16 };
const char* to_string(Precision precision);
std::optional<Precision> precision_from(std::string_view name);

}  // namespace tj::trainer
