// How a checkpoint names a part of a tensor that one rank alone has: "exp_avg.w[128:256]" is
// elements 128 to 255 of exp_avg.w, flat. Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "trainer/values/flat_layout.h"

namespace tj::trainer {

struct SliceName {
  std::string tensor;
  ElementRange range;
  bool operator==(const SliceName&) const = default;
};

std::string slice_name(const std::string& tensor, const ElementRange& range);
/// None for a name that is not of that form: that of a whole tensor.
std::optional<SliceName> parse_slice_name(std::string_view name);

}  // namespace tj::trainer
