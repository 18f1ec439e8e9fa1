// What sharing among the ranks was worth: memory and traffic, beside what the laws of ZeRO say.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tj::trainer {

struct ZeroReport {
  int stage = 0;
  int ranks = 1;
  std::optional<int> group_size = {};  // ranks that share out among themselves; absent: all do
  std::int64_t parameters = 0;
  std::int64_t state_bytes = 0;    // of one rank: weights, gradients, moments, averages
  std::int64_t elements_sent = 0;  // by one rank in one step
  std::int64_t bytes_sent = 0;
};

/// What a rank sends in a step in units of all parameters, as the laws count: of a collective over
/// n elements a rank of N sends n (N - 1) / N, and the law counts n. 0 for a single rank. Of
/// groups, whose collectives have two such N, it is what a rank sends.
double volume_in_parameters(const ZeroReport& report);

/// zero 3 on 4 ranks | state 4.02 bytes per parameter | 2.98 x the parameters moved in a step
/// zero 3 on 4 ranks in groups of 2 | state ... | 2.00 x the parameters sent by each in a step
std::string zero_line(const ZeroReport& report);
std::string zero_json(const ZeroReport& report);

}  // namespace tj::trainer
