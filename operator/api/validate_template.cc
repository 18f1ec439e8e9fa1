#include "operator/api/validate_template.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "contract/launch_env.h"

namespace tj {
namespace {

using field::Bounds;
using field::child;
using field::Field;
using field::FieldChecker;
using field::item;
using field::shown;
using nlohmann::json;

constexpr Bounds kContainers{.min = 1, .max = 64};
constexpr Bounds kInitContainers{.min = 0, .max = 64};
constexpr Bounds kEnvVars{.min = 0, .max = 1024};
constexpr Bounds kEnvNameChars{.min = 1, .max = 1024};
constexpr Bounds kAnyCount{.min = 0, .max = std::numeric_limits<long long>::max()};
/// A pod's own fields need a dozen. Copying and writing JSON takes as deep a recursion.
constexpr int kLevelsMax = 64;

constexpr std::string_view kTemplateFields[] = {"metadata", "spec"};

void check_env_name(FieldChecker& checker, const Field& name) {
  if (name.value == nullptr) return checker.add(name, "is missing; it must be the variable's name");
  checker.check_text(name, kEnvNameChars);
  if (!name.value->is_string()) return;
  const auto reserved = reserved_env_names();
  const bool is_reserved =
      std::find(reserved.begin(), reserved.end(), name.value->get<std::string>()) != reserved.end();
  if (is_reserved) {
    checker.add(name,
                "is " + shown(*name.value) +
                    "; it must be another name: the operator sets this variable for each worker");
  }
}

void check_env(FieldChecker& checker, const Field& env) {
  if (!checker.check_list(env, kEnvVars, "variables, as in [{name: A, value: b}]")) return;
  for (std::size_t i = 0; i < env.value->size(); ++i) {
    const Field variable = item(env, i);
    if (!checker.require_object(variable, "a variable, as in {name: A, value: b}")) continue;
    check_env_name(checker, child(variable, "name"));
    const Field value = child(variable, "value");
    if (value.value != nullptr && !value.value->is_string()) {
      checker.add(value, "is " + shown(*value.value) + "; it must be a text: put it in quotes");
    }
  }
}

/// Read for the number of processes, and where the scheduler finds no node.
void check_resources(FieldChecker& checker, const Field& resources) {
  if (!checker.check_object(resources, "limits and requests")) return;
  for (const char* list : {"limits", "requests"}) {
    const Field quantities = child(resources, list);
    if (!checker.check_object(quantities, "resources and quantities")) continue;
    for (const auto& [resource, quantity] : quantities.value->items()) {
      if (quantity.is_number() || quantity.is_string() || quantity.is_null()) continue;
      checker.add(child(quantities, resource),
                  "is " + shown(quantity) + "; it must be a quantity, a number or a text");
    }
  }
}

void check_containers(FieldChecker& checker, const Field& list, Bounds sizes) {
  if (!checker.check_list(list, sizes, "containers")) return;
  for (std::size_t i = 0; i < list.value->size(); ++i) {
    const Field container = item(list, i);
    if (!checker.require_object(container, "a container")) continue;
    const Field name = child(container, "name");
    const bool has_name = name.value != nullptr && name.value->is_string() && *name.value != "";
    if (!has_name) {
      checker.add(name, (name.value == nullptr ? "is missing" : "is " + shown(*name.value)) +
                            "; it must be the container's name");
    }
    check_env(checker, child(container, "env"));
    check_resources(checker, child(container, "resources"));
  }
}

void check_pod_metadata(FieldChecker& checker, const Field& metadata) {
  if (!checker.check_object(metadata, "labels and annotations")) return;
  for (const char* list : {"labels", "annotations"}) {
    const Field texts = child(metadata, list);
    if (!checker.check_object(texts, "names and texts")) continue;
    for (const auto& [name, value] : texts.value->items()) {
      if (value.is_string()) continue;
      checker.add(child(texts, name),
                  "is " + shown(value) + "; it must be a text: put it in quotes");
    }
  }
}

/// Each entry must be an object; `check(entry)` looks at what is one.
template <typename Check>
void check_objects(FieldChecker& checker, const Field& list, const char* meaning, Check check) {
  if (!checker.check_list(list, kAnyCount, meaning)) return;
  for (std::size_t i = 0; i < list.value->size(); ++i) {
    const Field entry = item(list, i);
    if (checker.require_object(entry, "one of the " + std::string(meaning))) check(entry);
  }
}

void check_is_text(FieldChecker& checker, const Field& text) {
  if (text.value == nullptr || text.value->is_string()) return;
  checker.add(text, "is " + shown(*text.value) + "; it must be a text");
}

/// The operator adds a toleration of its own, unless one of these is it.
void check_tolerations(FieldChecker& checker, const Field& tolerations) {
  check_objects(checker, tolerations, "tolerations",
                [&](const Field& toleration) { check_is_text(checker, child(toleration, "key")); });
}

/// The operator adds the nodes that it excludes to each of the terms.
void check_affinity(FieldChecker& checker, const Field& affinity) {
  if (!checker.check_object(affinity, "nodeAffinity, podAffinity and podAntiAffinity")) return;
  const Field of_nodes = child(affinity, "nodeAffinity");
  if (!checker.check_object(of_nodes, "what is required and preferred of a node")) return;
  const Field required = child(of_nodes, "requiredDuringSchedulingIgnoredDuringExecution");
  if (!checker.check_object(required, "nodeSelectorTerms")) return;
  check_objects(checker, child(required, "nodeSelectorTerms"), "terms", [&](const Field& term) {
    check_objects(checker, child(term, "matchFields"), "requirements", [](const Field&) {});
  });
}

/// Breadth first, for what is too deep is too deep for a recursion.
bool is_too_deep(const json& value) {
  std::vector<const json*> level{&value};
  for (int depth = 0; !level.empty(); ++depth) {
    if (depth > kLevelsMax) return true;
    std::vector<const json*> next;
    for (const json* parent : level) {
      if (!parent->is_structured()) continue;
      for (const json& entry : *parent) next.push_back(&entry);
    }
    level = std::move(next);
  }
  return false;
}

}  // namespace

void check_template(FieldChecker& checker, const Field& pod_template) {
  if (!checker.require_object(pod_template, "a pod template")) return;
  if (is_too_deep(*pod_template.value)) {
    return checker.add(pod_template, "has lists and objects in more than " +
                                         std::to_string(kLevelsMax) + " levels; no pod has");
  }
  checker.check_known_fields(pod_template, kTemplateFields);
  check_pod_metadata(checker, child(pod_template, "metadata"));
  const Field spec = child(pod_template, "spec");
  if (!checker.require_object(spec, "a pod's specification with containers")) return;
  const Field restart_policy = child(spec, "restartPolicy");
  if (restart_policy.value != nullptr && *restart_policy.value != "Never") {
    checker.add(restart_policy,
                "is " + shown(*restart_policy.value) +
                    "; it must be \"Never\" or left out: a worker that is restarted "
                    "alone can't rejoin its gang");
  }
  const Field containers = child(spec, "containers");
  if (containers.value == nullptr) {
    checker.add(containers, "is missing; it must be a list of at least one container");
  }
  check_containers(checker, containers, kContainers);
  check_containers(checker, child(spec, "initContainers"), kInitContainers);
  check_tolerations(checker, child(spec, "tolerations"));
  check_affinity(checker, child(spec, "affinity"));
}

}  // namespace tj
