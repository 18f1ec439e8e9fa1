#include "trainer/workload/parameter_groups.h"

#include <charconv>
#include <cmath>

#include "trainer/values/glob.h"

namespace tj::trainer {
namespace {

Error wrong(const std::string& text, const std::string& rule) {
  return {.code = Code::invalid, .message = "is \"" + text + "\"; " + rule, .subject = "--group"};
}

std::optional<double> number_from(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool parsed = failure == std::errc{} && end == text.data() + text.size();
  if (!parsed || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Result<ParameterGroup> parameter_group_from(const std::string& text) {
  const std::string form = "it must be PATTERN:lr=FACTOR,weight-decay=NUMBER, or one of the two";
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
    return wrong(text, form);
  ParameterGroup group{.pattern = text.substr(0, colon), .lr_scale = {}, .weight_decay = {}};
  std::string_view rest = std::string_view(text).substr(colon + 1);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const auto word = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    const auto equals = word.find('=');
    if (equals == std::string_view::npos) return wrong(text, form);
    const auto name = word.substr(0, equals);
    const auto value = number_from(word.substr(equals + 1));
    if (name != "lr" && name != "weight-decay") return wrong(text, form);
    if (!value) return wrong(text, std::string(name) + " must be a number from 0");
    (name == "lr" ? group.lr_scale : group.weight_decay) = value;
  }
  return group;
}

Result<std::vector<UpdateRule>> update_rules(std::span<const TensorSpec> tensors,
                                             const UpdateRule& otherwise,
                                             std::span<const ParameterGroup> groups) {
  std::vector<UpdateRule> rules;
  std::vector<std::string> names;
  for (const auto& tensor : tensors) {
    names.push_back(tensor.name);
    rules.push_back(otherwise);
    if (tensor.shape.size() < 2) rules.back().weight_decay = 0;
  }
  for (const auto& group : groups) {
    bool matches = false;
    for (std::size_t index = 0; index < tensors.size(); ++index) {
      if (!trainer::matches(group.pattern, tensors[index].name)) continue;
      matches = true;
      if (group.lr_scale) rules[index].lr_scale = *group.lr_scale;
      if (group.weight_decay) rules[index].weight_decay = *group.weight_decay;
      if (group.beta1) rules[index].beta1 = *group.beta1;
      if (group.beta2) rules[index].beta2 = *group.beta2;
    }
    if (!matches) {
      return wrong(group.pattern, "it must match the name of a tensor, such as " +
                                      one_of_text(nearest_names(group.pattern, names)));
    }
  }
  return rules;
}

}  // namespace tj::trainer
