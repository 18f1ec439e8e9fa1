// The linter of NCCL's and Gloo's variables: names that nothing reads, values that are cut or do
// harm, prefixes, settings for debugging only, contradictions; each with its effect in seconds or
// megabytes, and what would be right. Pure. Sources: the environment page of NCCL's manual, and
// NCCL 2.28's src/transport/net_ib, src/graph/tuning.cc, src/misc/utils.cc.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "contract/launch_env.h"
#include "trainer/check/finding.h"
#include "trainer/network/network.h"

namespace tj::trainer {

/// What the machine shows; empty: not known, and nothing is concluded from it.
struct LintFacts {
  std::vector<HcaPort> ports;
  std::vector<std::string> interfaces;
};

inline constexpr const char* kLintCheck = "NCCL settings";

/// Findings for the variables of collectives among `variables`, in the order of their names; none
/// where there is nothing to say.
std::vector<Finding> lint_nccl(std::span<const EnvVar> variables, const LintFacts& facts = {});

/// For a start of training: one line for each finding of warn and above.
std::vector<std::string> lint_lines(std::span<const EnvVar> variables, const LintFacts& facts);

/// The lines about time limits that nothing reads: whoever sets one must hear of it without a GPU,
/// too.
std::vector<std::string> timeout_lines(std::span<const EnvVar> variables);

/// All variables of this process.
std::vector<EnvVar> process_variables();

/// Interfaces and adapters of this machine.
LintFacts lint_facts();

}  // namespace tj::trainer
