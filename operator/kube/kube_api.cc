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
  }
  return "unknown";
}

const char* to_string(Verb verb) {
  switch (verb) {
    case Verb::get: return "get";
    case Verb::list: return "list";
    case Verb::create: return "create";
    case Verb::patch_status: return "patch";
    case Verb::remove: return "delete";
  }
  return "unknown";
}

}  // namespace tj
