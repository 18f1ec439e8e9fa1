// Which ranks were asked to stop: each adds its share to a sum that all make anyway.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>

#include "trainer/comm/communicator.h"

namespace tj::trainer {

inline constexpr std::size_t kStopVoteNumbers = 3;

/// What this rank adds; zeros while nobody has asked it.
std::array<double, kStopVoteNumbers> stop_vote(const Communicator& communicator);

/// None when the sums say that no rank was asked; else in words: "asked to stop by signal 15" when
/// this rank was, or "rank 1 on node b was asked to stop by signal 15".
std::optional<std::string> asked_to_stop(const Communicator& communicator,
                                         std::span<const double> sums);

}  // namespace tj::trainer
