#include "operator/api/validate_policy.h"

#include <nlohmann/json.hpp>

#include "operator/api/policy_fields.h"

namespace tj {
namespace {

using field::Bounds;
using field::child;
using field::Field;
using field::FieldChecker;
using field::item;
using field::List;
using field::Names;
using field::Objects;
using field::visit_fields;

template <typename Object>
void check_fields(FieldChecker& checker, const Field& object);

bool names_a_failure(const Field& rule) {
  const auto& names = field::field_names<FailureRule>();
  return std::any_of(names.begin(), names.end(), [&](const auto name) {
    return name != "action" && child(rule, std::string(name)).value != nullptr;
  });
}

void check_rule(FieldChecker& checker, const Field& rule) {
  if (!checker.require_object(rule, "an action, and when it is taken")) return;
  check_fields<FailureRule>(checker, rule);
  if (names_a_failure(rule)) return;
  checker.add(rule,
              "matches nothing; it must say when: by exitCodes, signals, conditions or causes");
}

/// Checks each field of `object` that visit_fields() names, by the type of its member.
struct PolicyChecker {
  FieldChecker& checker;
  const Field& object;

  void operator()(const char* name, const bool&) const {
    checker.check_boolean(child(object, name));
  }
  template <field::WholeNumber Number>
  void operator()(const char* name, const Number&, Bounds bounds) const {
    checker.check_whole_number(child(object, name), bounds);
  }
  void operator()(const char* name, const std::string&, Bounds char_counts) const {
    checker.check_text(child(object, name), char_counts);
  }
  template <field::Choice Value>
  void operator()(const char* name, const Value&) const {
    checker.check_choice(child(object, name), kTexts<Value>);
  }
  template <field::Choice Value>
  void operator()(const char* name, const Value&, field::Required) const {
    checker.require_choice(child(object, name), kTexts<Value>);
  }
  template <typename Object>
  void operator()(const char* name, const Object&, const char* meaning) const {
    const Field field = child(object, name);
    if (checker.check_object(field, meaning)) check_fields<Object>(checker, field);
  }
  template <typename Value, typename Limits>
  void operator()(const char* name, const std::vector<Value>& values,
                  const List<Limits>& list) const {
    const Field field = child(object, name);
    if (!checker.check_list(field, list.sizes, list.meaning)) return;
    for (std::size_t i = 0; i < field.value->size(); ++i) {
      check_entry(item(field, i), values, list.each);
    }
  }

 private:
  void check_entry(const Field& entry, const std::vector<int>&, Bounds bounds) const {
    checker.check_whole_number(entry, bounds);
  }
  void check_entry(const Field& entry, const std::vector<std::string>&, Bounds char_counts) const {
    checker.check_text(entry, char_counts);
  }
  template <field::Choice Value>
  void check_entry(const Field& entry, const std::vector<Value>&, Names choices) const {
    checker.require_choice(entry, choices);
  }
  void check_entry(const Field& entry, const std::vector<FailureRule>&, Objects) const {
    check_rule(checker, entry);
  }
};

template <typename Object>
void check_fields(FieldChecker& checker, const Field& object) {
  checker.check_known_fields(object, field::field_names<Object>());
  Object left_out;
  visit_fields(left_out, PolicyChecker{checker, object});
}

}  // namespace

void check_policy(FieldChecker& checker, const Field& spec) {
  JobSpec left_out;
  visit_fields(left_out, PolicyChecker{checker, spec});
}

}  // namespace tj
