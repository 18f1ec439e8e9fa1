// Which learning rate and weight decay each tensor gets: one rule for all, and groups by name that
// override it. Torch-free and pure.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

/// What a flag --group says: "PATTERN:lr=0.1,weight-decay=0".
struct ParameterGroup {
  std::string pattern;  // a glob on the tensor's name, as in a shell
  std::optional<double> lr_scale;
  std::optional<double> weight_decay;
  std::optional<double> beta1 = {};  // of AdamW: an optimizer of its own; no flag says it
  std::optional<double> beta2 = {};
  bool operator==(const ParameterGroup&) const = default;
};

/// Fails with Code::invalid; the message says what would be right.
Result<ParameterGroup> parameter_group_from(const std::string& text);

struct UpdateRule {
  double lr_scale = 1;  // times the schedule's rate
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  auto operator<=>(const UpdateRule&) const = default;
};

/// One rule for each tensor. Without a group that of `otherwise`, with its weight decay for tensors
/// of two and more dimensions only. Of several groups that match, the last one wins. Fails with
/// Code::invalid when a group matches no tensor.
Result<std::vector<UpdateRule>> update_rules(std::span<const TensorSpec> tensors,
                                             const UpdateRule& otherwise,
                                             std::span<const ParameterGroup> groups);

}  // namespace tj::trainer
