// The CRD's schema of the policies against the one list of them in the operator: a field, a bound,
// a word or a default that stands in one and not in the other is found here.
#include "operator/api/policy_fields.h"

#include <gtest/gtest.h>

#include "tests/crd/case_file.h"
#include "tests/places.h"

namespace tj {
namespace {

using field::Bounds;
using field::List;
using field::visit_fields;
using nlohmann::json;

template <typename Object>
json schema_of(Object& object);

json number_schema(Bounds bounds) {
  return {
      {"type", "integer"}, {"format", "int32"}, {"minimum", bounds.min}, {"maximum", bounds.max}};
}
json text_schema(Bounds char_counts) {
  return {{"type", "string"}, {"minLength", char_counts.min}, {"maxLength", char_counts.max}};
}
json choice_schema(field::Names choices) { return {{"type", "string"}, {"enum", choices}}; }

template <typename Value>
void set_default(json& schema, const Value& value) {
  schema["default"] = value;
}
void set_default(json& schema, std::chrono::seconds value) { schema["default"] = value.count(); }
template <typename Value>
void set_default(json& schema, const std::optional<Value>& value) {
  EXPECT_FALSE(value) << "the default would not be in the schema";
  schema.erase("default");
}

/// Writes what the CRD must say of each field that visit_fields() names.
struct SchemaWriter {
  json& schema;

  void operator()(const char* name, const bool& value) const {
    schema["properties"][name] = {{"type", "boolean"}, {"default", value}};
  }
  template <field::WholeNumber Number>
  void operator()(const char* name, const Number& value, Bounds bounds) const {
    set_default(schema["properties"][name] = number_schema(bounds), value);
  }
  void operator()(const char* name, const std::string& value, Bounds char_counts) const {
    set_default(schema["properties"][name] = text_schema(char_counts), value);
  }
  template <field::Choice Value>
  void operator()(const char* name, const Value& value) const {
    set_default(schema["properties"][name] = choice_schema(kTexts<Value>), text_of(value));
  }
  template <field::Choice Value>
  void operator()(const char* name, const Value&, field::Required) const {
    schema["properties"][name] = choice_schema(kTexts<Value>);
    schema["required"].push_back(name);
  }
  template <typename Object>
  void operator()(const char* name, Object& object, const char*) const {
    schema["properties"][name] = schema_of(object);
  }
  template <typename Value, typename Limits>
  void operator()(const char* name, const std::vector<Value>&, const List<Limits>& list) const {
    json written = {{"type", "array"}, {"maxItems", list.sizes.max}};
    if (list.sizes.min > 0) written["minItems"] = list.sizes.min;
    written["items"] = entry_schema(Value{}, list.each);
    schema["properties"][name] = written;
  }

 private:
  static json entry_schema(int, Bounds bounds) { return number_schema(bounds); }
  static json entry_schema(const std::string&, Bounds char_counts) {
    return text_schema(char_counts);
  }
  template <field::Choice Value>
  static json entry_schema(Value, field::Names choices) {
    return choice_schema(choices);
  }
  static json entry_schema(FailureRule rule, field::Objects) { return schema_of(rule); }
};

template <typename Object>
json schema_of(Object& object) {
  json schema = {{"type", "object"}};
  visit_fields(object, SchemaWriter{schema});
  return schema;
}

/// Without the words for people, and without the rules between fields.
json without_descriptions(json schema) {
  if (!schema.is_structured()) return schema;
  const bool is_field = schema.is_object() && schema.contains("type");
  if (is_field) {
    schema.erase("description");
    schema.erase("x-kubernetes-validations");
  }
  for (json& entry : schema) entry = without_descriptions(entry);
  return schema;
}

json crd_policies() {
  const json crd = read_yaml(source_dir() + "/manifests/crd/trainingjobs.yaml");
  json spec = without_descriptions(
      crd.at("/spec/versions/0/schema/openAPIV3Schema/properties/spec"_json_pointer));
  spec["properties"].erase("replicaSpecs");
  spec.erase("required");
  return spec;
}

TEST(PolicyFields, the_crd_says_of_each_field_what_the_list_says) {
  JobSpec left_out;
  const json wanted = schema_of(left_out);
  EXPECT_EQ(crd_policies(), wanted) << json::diff(crd_policies(), wanted).dump(2);
}

TEST(PolicyFields, a_field_that_the_crd_lacks_is_found) {
  json policies = crd_policies();
  JobSpec left_out;
  policies["properties"]["runPolicy"]["properties"].erase("maxRestarts");
  EXPECT_NE(policies, schema_of(left_out));
}

}  // namespace
}  // namespace tj
