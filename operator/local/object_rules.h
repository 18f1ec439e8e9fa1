// What an API server says about one object: names of kinds, validity, preconditions, and the words
// of its errors. Pure; object_store.cc is built of it.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "contract/result.h"
#include "operator/api/types.h"
#include "operator/kube/kube_api.h"
#include "operator/local/label_selector.h"

namespace tj {

/// "Pod" and so on: what a resource's objects are.
const char* kind_of(Resource resource);
/// "pods" or "trainingjobs.kubebrain.io": as error messages name it.
std::string qualified_name(Resource resource);
LabelSelector::Labels labels_of(const nlohmann::json& object);
/// What a field selector may name, as the real server has it: each name once, "" without a value.
LabelSelector::Labels fields_of(Resource resource, const nlohmann::json& object);
ObjectKey key_of(const nlohmann::json& object);

namespace object_rules {

using Json = nlohmann::json;
/// The schema's work: what is wrong with a TrainingJob, empty if nothing.
using JobCheck = std::function<std::string(const Json& job)>;

Error failure(Code code, Resource resource, const ObjectKey& key, std::string message);
Error not_found(Resource resource, const ObjectKey& key);
Error already_exists(Resource resource, const ObjectKey& key);
Error conflict(Resource resource, const ObjectKey& key, const std::string& why);
Error invalid(Resource resource, const ObjectKey& key, const std::string& why);

bool has_generation(Resource resource);
bool has_namespace(Resource resource);
/// The status is no client's to write at create.
bool has_own_status(Resource resource);
/// A replace must name the version it was made from.
bool needs_version(Resource resource);
/// Empty: valid. `check` may be empty.
std::string why_invalid(Resource resource, const Json& object, const JobCheck& check);
/// The defaults that a server writes into a new pod, as far as they decide anything here.
void complete_pod(Json& pod);
/// The guard of a write: metadata.resourceVersion absent or equal is no conflict.
std::optional<Error> check_version(Resource resource, const Json& written, const Json& stored);
/// DeleteOptions.preconditions.
std::optional<Error> check_preconditions(Resource resource, const Json& stored,
                                         const Json& options);
/// How long a pod may take to end, by DeleteOptions; 0: it goes at once.
long long grace_seconds(const Json& pod, const Json& options);

}  // namespace object_rules
}  // namespace tj
