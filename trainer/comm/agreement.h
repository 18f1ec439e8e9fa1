// One rank's failure becomes everybody's, with its cause: the alternative is a timeout without one.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/values/failure.h"

namespace tj::trainer {

/// Collective. The failure of the lowest rank that has one, in the others' words
/// "rank 1 on node b: ..."; none when none has.
std::optional<Failure> agree(Communicator& communicator, const std::optional<Failure>& mine);

/// Collective. The sum over the ranks of each of a few numbers.
std::vector<double> sum_over_ranks(Communicator& communicator, const std::vector<double>& mine);

/// Collective. The text of rank `root`; the others' is not looked at.
std::string shared_text(Communicator& communicator, const std::string& text, int root);

}  // namespace tj::trainer
