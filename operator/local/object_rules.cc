#include "operator/local/object_rules.h"

#include <algorithm>

#include "operator/api/read.h"

namespace tj {

using namespace read;
using Json = nlohmann::json;

const char* kind_of(Resource resource) {
  switch (resource) {
    case Resource::training_jobs: return names::kKind;
    case Resource::pods: return "Pod";
    case Resource::services: return "Service";
    case Resource::events: return "Event";
    case Resource::leases: return "Lease";
    case Resource::nodes: return "Node";
    case Resource::network_policies: return "NetworkPolicy";
    case Resource::config_maps: return "ConfigMap";
    case Resource::self_subject_reviews: return "SelfSubjectReview";
  }
  return "";
}

namespace {

/// ".kubebrain.io"; nothing for the core group.
std::string group_suffix(Resource resource) {
  const std::string version = api_version_of(resource);
  const auto slash = version.find('/');
  return slash == std::string::npos ? "" : "." + version.substr(0, slash);
}

std::vector<const char*> selectable_fields(Resource resource) {
  switch (resource) {
    case Resource::pods:
      return {"metadata.name", "metadata.namespace", "spec.nodeName", "status.phase"};
    case Resource::events:
      return {"metadata.name",
              "metadata.namespace",
              "involvedObject.kind",
              "involvedObject.namespace",
              "involvedObject.name",
              "involvedObject.uid",
              "reason",
              "type"};
    default: return {"metadata.name", "metadata.namespace"};
  }
}

}  // namespace

std::string qualified_name(Resource resource) {
  return to_string(resource) + group_suffix(resource);
}

LabelSelector::Labels fields_of(Resource resource, const Json& object) {
  LabelSelector::Labels fields;
  for (const std::string name : selectable_fields(resource)) {
    const auto dot = name.find('.');
    fields[name] = dot == std::string::npos
                       ? string_at(object, name)
                       : string_at(object_at(object, name.substr(0, dot)), name.substr(dot + 1));
  }
  return fields;
}

LabelSelector::Labels labels_of(const Json& object) {
  LabelSelector::Labels labels;
  for (const auto& [key, value] : object_at(object_at(object, "metadata"), "labels").items()) {
    if (value.is_string()) labels[key] = value.get<std::string>();
  }
  return labels;
}

ObjectKey key_of(const Json& object) {
  const Json& meta = object_at(object, "metadata");
  return {string_at(meta, "namespace"), string_at(meta, "name")};
}

namespace object_rules {
namespace {

std::string quoted(Resource resource, const std::string& name) {
  return qualified_name(resource) + " \"" + name + "\"";
}

/// RFC 1123 subdomain, the rule for names of all our resources.
bool is_name(const std::string& name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto inner = [&](char c) { return plain(c) || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= 253 && plain(name.front()) && plain(name.back()) &&
         std::all_of(name.begin(), name.end(), inner);
}

}  // namespace

Error failure(Code code, Resource resource, const ObjectKey& key, std::string message) {
  return Error{.code = code,
               .message = std::move(message),
               .subject = qualified_name(resource) + " " + to_string(key),
               .retry_after = {}};
}

Error not_found(Resource resource, const ObjectKey& key) {
  return failure(Code::not_found, resource, key, quoted(resource, key.name) + " not found");
}

Error already_exists(Resource resource, const ObjectKey& key) {
  return failure(Code::conflict, resource, key, quoted(resource, key.name) + " already exists");
}

Error conflict(Resource resource, const ObjectKey& key, const std::string& why) {
  return failure(Code::conflict, resource, key,
                 "Operation cannot be fulfilled on " + quoted(resource, key.name) + ": " + why);
}

Error invalid(Resource resource, const ObjectKey& key, const std::string& why) {
  return failure(
      Code::invalid, resource, key,
      kind_of(resource) + group_suffix(resource) + " \"" + key.name + "\" is invalid: " + why);
}

bool has_generation(Resource resource) {
  return resource == Resource::training_jobs || resource == Resource::pods ||
         resource == Resource::network_policies;
}

bool has_namespace(Resource resource) { return resource != Resource::nodes; }

bool has_own_status(Resource resource) {
  return resource == Resource::training_jobs || resource == Resource::pods ||
         resource == Resource::services;
}

bool needs_version(Resource resource) {
  return resource == Resource::training_jobs || resource == Resource::leases;
}

void complete_pod(Json& pod) {
  Json& spec = pod["spec"];
  if (!spec.contains("terminationGracePeriodSeconds")) spec["terminationGracePeriodSeconds"] = 30;
  if (!spec.contains("restartPolicy")) spec["restartPolicy"] = "Always";
  pod["status"] = {{"phase", "Pending"}, {"qosClass", "BestEffort"}};
}

std::string why_invalid(Resource resource, const Json& object, const JobCheck& check) {
  const std::string name = string_at(object_at(object, "metadata"), "name");
  if (!is_name(name)) {
    return "metadata.name: Invalid value: \"" + name +
           "\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
           "'-' or '.', and "
           "must start and end with an alphanumeric character";
  }
  if (resource == Resource::pods) {
    if (array_at(object_at(object, "spec"), "containers").empty()) {
      return "spec.containers: Required value";
    }
  }
  if (resource == Resource::training_jobs && check) return check(object);
  return "";
}

std::optional<Error> check_version(Resource resource, const Json& written, const Json& stored) {
  const std::string wanted = string_at(object_at(written, "metadata"), "resourceVersion");
  if (wanted.empty() || wanted == string_at(object_at(stored, "metadata"), "resourceVersion"))
    return std::nullopt;
  return conflict(resource, key_of(stored),
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

std::optional<Error> check_preconditions(Resource resource, const Json& stored,
                                         const Json& options) {
  const Json& wanted = object_at(options, "preconditions");
  const Json& meta = object_at(stored, "metadata");
  for (const auto& [field, word] :
       {std::pair{"uid", "UID"}, std::pair{"resourceVersion", "ResourceVersion"}}) {
    const std::string expected = string_at(wanted, field);
    const std::string actual = string_at(meta, field);
    if (expected.empty() || expected == actual) continue;
    return conflict(resource, key_of(stored),
                    std::string("Precondition failed: ") + word + " in precondition: " + expected +
                        ", " + word + " in object meta: " + actual);
  }
  return std::nullopt;
}

/// As podStrategy.CheckGracefulDelete (kubernetes pkg/registry/core/pod/strategy.go).
long long grace_seconds(const Json& pod, const Json& options) {
  const Json& spec = object_at(pod, "spec");
  const std::string phase = string_at(object_at(pod, "status"), "phase");
  const bool never_started = string_at(spec, "nodeName").empty();
  if (never_started || phase == "Succeeded" || phase == "Failed") return 0;
  const auto own = number_at<long long>(spec, "terminationGracePeriodSeconds", 30);
  const auto seconds = number_at<long long>(options, "gracePeriodSeconds", own);
  return seconds < 0 ? 1 : seconds;
}

}  // namespace object_rules
}  // namespace tj
