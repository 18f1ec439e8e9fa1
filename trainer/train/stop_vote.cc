#include "trainer/train/stop_vote.h"

#include "trainer/process/early_stop.h"
#include "trainer/process/stop_request.h"

namespace tj::trainer {

std::array<double, kStopVoteNumbers> stop_vote(const Communicator& communicator) {
  const int signal = stop_signal();
  if (signal == 0) return {};
  return {1.0, static_cast<double>(communicator.rank()), static_cast<double>(signal)};
}

std::optional<std::string> asked_to_stop(const Communicator& communicator,
                                         std::span<const double> sums) {
  const int ranks = static_cast<int>(sums[0]);
  if (ranks == 0) return std::nullopt;
  if (const int signal = stop_signal(); signal != 0) return asked_by(signal);
  if (ranks > 1) return std::to_string(ranks) + " ranks were asked to stop";
  // Only one has added anything: the sums are its own numbers.
  return communicator.named(static_cast<int>(sums[1])) + " was " +
         asked_by(static_cast<int>(sums[2]));
}

}  // namespace tj::trainer
