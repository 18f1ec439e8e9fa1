// Which variables of NCCL, Gloo and libtorch's collectives exist. Pure.
#pragma once
#include <span>
#include <string_view>
#include <utility>

namespace tj::trainer {

/// By its prefix: NCCL_, GLOO_, TORCH_NCCL_, TORCH_GLOO_, TORCH_DISTRIBUTED_.
bool is_collective_variable(std::string_view name);

enum class NameKind {
  known,    // NCCL 2.28 or libtorch 2.11 reads it
  later,    // only a later NCCL does
  foreign,  // of a plug-in of NCCL: nothing is known of it
  unknown,  // nothing reads it
};
NameKind kind_of_name(std::string_view name);

/// The known name that differs least; empty when none is near.
std::string_view nearest_name(std::string_view name);

}  // namespace tj::trainer
