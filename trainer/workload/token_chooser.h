// Which token comes next, by the logits of all of them. Pure: what is random is given. Torch-free.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

struct ChoosingRule {
  double temperature = 1;  // logits are divided by it; 0: always the most probable one
  std::int64_t top_k = 0;  // only so many of the most probable; 0: all
  double top_p = 1;        // of these the fewest that have this share together (nucleus sampling,
                           // Holtzman et al. 2020: The curious case of neural text degeneration)
};

struct TokenShare {
  std::int64_t token = 0;
  double probability = 0;
  bool operator==(const TokenShare&) const = default;
};

class TokenChooser {
 public:
  /// `may_choose`: by id; what lies beyond it is never chosen. At least one must be true.
  TokenChooser(const ChoosingRule& rule, std::vector<bool> may_choose);

  /// What is left to choose from: all by their ids, some with the most probable one first, the
  /// lower id of equals. Fails with Code::invalid when a logit is not finite.
  Result<std::vector<TokenShare>> shares(std::span<const float> logits) const;
  /// The one that `uniform`, in [0, 1), falls on.
  Result<std::int64_t> choose(std::span<const float> logits, double uniform) const;

 private:
  ChoosingRule rule_;
  std::vector<bool> may_choose_;
};

/// In [0, 1) with 53 bits, a function of its arguments alone.
double uniform_of(std::uint64_t seed, std::uint64_t sample, std::uint32_t position);

}  // namespace tj::trainer
