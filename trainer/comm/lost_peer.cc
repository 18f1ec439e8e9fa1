#include "trainer/comm/lost_peer.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "trainer/comm/nccl_words.h"
#include "trainer/values/failure.h"

namespace tj::trainer {
namespace {

/// NCCL's own words (ncclGetErrorString) for what this rank did to it, or its GPU did.
constexpr std::array<std::string_view, 3> kOfThisRank{"unhandled cuda error", "invalid argument",
                                                      "invalid usage"};

template <typename Type>
bool is_a(const std::exception& failure) {
  return dynamic_cast<const Type*>(&failure) != nullptr;
}

}  // namespace

bool means_lost_peer(const std::exception& failure) {
  if (is_a<c10::OutOfMemoryError>(failure) || is_a<c10::AcceleratorError>(failure)) return false;
  if (is_a<c10::DistNetworkError>(failure)) return true;
  // Only the first line: frames of the stack below it name ProcessGroupNCCL, whatever the cause.
  const std::string cause = cause_of(failure);
  const auto says = [&](std::string_view words) { return cause.find(words) != std::string::npos; };
  // Gloo throws plain texts; all of them carry its source path.
  if (says("gloo/")) return true;
  if (!is_a<c10::DistBackendError>(failure) || std::ranges::any_of(kOfThisRank, says)) return false;
  return !nccl_words(failure.what()).is_of_this_node;
}

}  // namespace tj::trainer
