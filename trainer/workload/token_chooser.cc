#include "trainer/workload/token_chooser.h"

#include <algorithm>
#include <cmath>

#include "trainer/values/counter_random.h"

namespace tj::trainer {
namespace {

/// Apart from the streams of a training with the same seed.
constexpr std::uint32_t kPurpose = 0x53414d50;

struct Candidate {
  float logit = 0;
  std::int64_t token = 0;
};

bool comes_before(const Candidate& one, const Candidate& other) {
  return one.logit != other.logit ? one.logit > other.logit : one.token < other.token;
}

Error not_finite(std::int64_t token) {
  return {.code = Code::invalid,
          .message = "the logit of token " + std::to_string(token) +
                     " is not finite; the weights are damaged, or the precision is too low",
          .subject = {}};
}

/// The first `count` in their order, and nothing else.
void keep_first(std::vector<Candidate>& candidates, std::size_t count) {
  count = std::min(count, candidates.size());
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(candidates.begin(), end, candidates.end(), comes_before);
  candidates.resize(count);
}

std::vector<TokenShare> softmax(const std::vector<Candidate>& candidates, double temperature) {
  std::vector<TokenShare> shares;
  double sum = 0;
  const double most = std::ranges::max(candidates, {}, &Candidate::logit).logit;
  for (const auto& candidate : candidates) {
    const double weight = std::exp((candidate.logit - most) / temperature);
    shares.push_back({.token = candidate.token, .probability = weight});
    sum += weight;
  }
  for (auto& share : shares) share.probability /= sum;
  return shares;
}

/// The fewest of the first that have the share `top_p` together, at least one.
void keep_nucleus(std::vector<TokenShare>& shares, double top_p) {
  double sum = 0;
  std::size_t count = 0;
  while (count < shares.size() && (count == 0 || sum < top_p)) sum += shares[count++].probability;
  shares.resize(count);
  for (auto& share : shares) share.probability /= sum;
}

}  // namespace

TokenChooser::TokenChooser(const ChoosingRule& rule, std::vector<bool> may_choose)
    : rule_(rule), may_choose_(std::move(may_choose)) {
  TJ_CHECK(std::ranges::find(may_choose_, true) != may_choose_.end(), "there is a choice");
}

Result<std::vector<TokenShare>> TokenChooser::shares(std::span<const float> logits) const {
  std::vector<Candidate> candidates;
  const auto count = std::min(logits.size(), may_choose_.size());
  for (std::size_t id = 0; id < count; ++id) {
    const auto token = static_cast<std::int64_t>(id);
    if (!may_choose_[id]) continue;
    if (!std::isfinite(logits[id])) return not_finite(token);
    candidates.push_back({.logit = logits[id], .token = token});
  }
  TJ_CHECK(!candidates.empty(), "the model knows one of them");
  const bool is_greedy = rule_.temperature == 0;
  const auto top_k = static_cast<std::size_t>(is_greedy ? 1 : rule_.top_k);
  if (top_k > 0 || rule_.top_p < 1)  // all of them need no order
    keep_first(candidates, top_k > 0 ? top_k : candidates.size());
  auto shares = softmax(candidates, is_greedy ? 1 : rule_.temperature);
  if (rule_.top_p < 1) keep_nucleus(shares, rule_.top_p);
  return shares;
}

Result<std::int64_t> TokenChooser::choose(std::span<const float> logits, double uniform) const {
  const auto left = shares(logits);
  if (!left) return left.error();
  double sum = 0;
  for (const auto& share : *left) {
    sum += share.probability;
    if (uniform < sum) return share.token;
  }
  return left->back().token;  // the sum may fall short of 1 by rounding
}

double uniform_of(std::uint64_t seed, std::uint64_t sample, std::uint32_t position) {
  const auto words =
      philox4x32({position, kPurpose, static_cast<std::uint32_t>(sample),
                  static_cast<std::uint32_t>(sample >> 32)},
                 {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t bits = std::uint64_t{words[0]} << 32 | words[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace tj::trainer
