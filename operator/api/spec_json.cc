#include "operator/api/spec_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/policy_fields.h"
#include "operator/api/read.h"

namespace tj {
namespace {
using namespace read;
using field::Bounds;
using field::List;
using field::visit_fields;

void assign(int& value, long long number) { value = static_cast<int>(number); }
void assign(std::chrono::seconds& value, long long number) { value = std::chrono::seconds{number}; }
template <typename Number>
void assign(std::optional<Number>& value, long long number) {
  assign(value.emplace(), number);
}

/// Reads each field of `object` that visit_fields() names into its member, by the member's type.
/// What is absent, null or of another type leaves it as it is.
struct FieldReader {
  const json& object;

  void operator()(const char* name, bool& value) const { value = bool_at(object, name, value); }
  template <field::WholeNumber Number>
  void operator()(const char* name, Number& value, Bounds bounds) const {
    const auto number = maybe_number_at<long long>(object, name);
    if (number) assign(value, std::clamp(*number, bounds.min, bounds.max));
  }
  void operator()(const char* name, std::string& value, Bounds) const {
    const std::string text = string_at(object, name);
    if (!text.empty()) value = text;
  }
  template <field::Choice Value, typename... Required>
  void operator()(const char* name, Value& value, Required...) const {
    value = value_of<Value>(string_at(object, name)).value_or(value);
  }
  template <typename Object>
  void operator()(const char* name, Object& value, const char*) const {
    visit_fields(value, FieldReader{object_at(object, name)});
  }
  template <typename Value, typename Limits>
  void operator()(const char* name, std::vector<Value>& values, const List<Limits>&) const {
    for (const json& entry : array_at(object, name)) read_entry(entry, values);
  }

 private:
  static void read_entry(const json& entry, std::vector<int>& numbers) {
    if (const auto number = json_integer<int>(entry)) numbers.push_back(*number);
  }
  static void read_entry(const json& entry, std::vector<std::string>& texts) {
    if (entry.is_string()) texts.push_back(text_of(entry));
  }
  template <field::Choice Value>
  static void read_entry(const json& entry, std::vector<Value>& values) {
    if (const auto value = value_of<Value>(text_of(entry))) values.push_back(*value);
  }
  static void read_entry(const json& entry, std::vector<FailureRule>& rules) {
    if (entry.is_object()) visit_fields(rules.emplace_back(), FieldReader{entry});
  }
};

}  // namespace

JobSpec spec_from_json(const json& spec) {
  const json& worker = object_at(object_at(spec, "replicaSpecs"), "Worker");
  JobSpec result;
  const auto worker_count = number_at<long long>(worker, "replicas", result.worker_count);
  assign(result.worker_count, std::clamp(worker_count, field::kWorkers.min, field::kWorkers.max));
  result.pod_template_json = object_at(worker, "template").dump();
  if (spec.is_object()) visit_fields(result, FieldReader{spec});
  return result;
}

}  // namespace tj
