// The words for resources and verbs: path segments and metric labels in one.
#include "operator/kube/kube_api.h"

#include "contract/names.h"

namespace tj {

const char* to_string(Resource resource) {
  switch (resource) {
    case Resource::training_jobs: return names::kPlural;
    case Resource::pods: return "pods";
    case Resource::services: return "services";
    case Resource::events: return "events";
    case Resource::leases: return "leases";
    case Resource::nodes: return "nodes";
    case Resource::network_policies: return "networkpolicies";
    case Resource::config_maps: return "configmaps";
    case Resource::self_subject_reviews: return "selfsubjectreviews";
  }
  return "unknown";
}

const char* api_version_of(Resource resource) {
  switch (resource) {
    case Resource::training_jobs: return names::kApiVersion;
    case Resource::pods:
    case Resource::services:
    case Resource::events:
    case Resource::nodes:
    case Resource::config_maps: return "v1";
    case Resource::leases: return "coordination.k8s.io/v1";
    case Resource::network_policies: return "networking.k8s.io/v1";
    case Resource::self_subject_reviews: return "authentication.k8s.io/v1";
  }
  return "unknown";
}

const char* to_string(Verb verb) {
  switch (verb) {
    case Verb::get: return "get";
    case Verb::list: return "list";
    case Verb::create: return "create";
    case Verb::replace: return "update";
    case Verb::patch:
    case Verb::patch_status: return "patch";
    case Verb::remove: return "delete";
  }
  return "unknown";
}

}  // namespace tj
