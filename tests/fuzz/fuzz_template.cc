// A pod template that the API server accepted (it is open there): everything that is made of it.
#include <nlohmann/json.hpp>

#include "operator/api/json.h"
#include "operator/api/validate.h"
#include "operator/local/pod_command.h"
#include "operator/plan/manifest.h"
#include "tests/fuzz/fuzzed.h"

namespace {
using nlohmann::json;

json job_with(json pod_template) {
  return {
      {"apiVersion", "kubebrain.io/v1"},
      {"kind", "TrainingJob"},
      {"metadata", {{"name", "j"}, {"namespace", "n"}, {"uid", "u"}}},
      {"spec",
       {{"replicaSpecs", {{"Worker", {{"replicas", 2}, {"template", std::move(pod_template)}}}}}}}};
}

void run_locally(const json& pod) {
  for (const char* list : {"initContainers", "containers"}) {
    if (!pod["spec"].contains(list)) continue;
    for (const json& container : pod["spec"][list]) {
      const auto process = tj::local_process(pod, container, {.volumes_folder = "/volumes"});
      if (process) TJ_CHECK(!process->argv.empty(), "a process has a program");
    }
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  json pod_template = json::parse(data, data + size, nullptr, false);
  if (pod_template.is_discarded()) return 0;
  const json object = job_with(std::move(pod_template));
  (void)describe(tj::validate_manifest(object));
  auto job = tj::job_from_json(object);
  TJ_CHECK(job.ok(), "a job with a name can be read");
  if (job->spec_error) return 0;
  for (const auto& nodes : {std::vector<std::string>{}, {"node-a", "node-b"}}) {
    job->status.excluded_nodes = nodes;
    const json pod = tj::make_pod(*job, {.worker_index = 1, .attempt = 2});
    (void)pod.dump();
    TJ_CHECK(pod["metadata"]["name"] == "j-worker-1", "the pod's name is ours");
    TJ_CHECK(pod["spec"]["restartPolicy"] == "Never", "the restart policy is ours");
    run_locally(pod);
  }
  (void)tj::make_network_policy(*job, "operators").dump();
  (void)tj::template_hash(job->spec);
  return 0;
}
