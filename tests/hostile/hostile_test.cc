// The pure core and the local mode over all hostile manifests: none of them makes anything throw,
// whether or not the validation would have stopped it before.
#include "tests/hostile/hostile.h"

#include <gtest/gtest.h>

#include "operator/api/json.h"
#include "operator/api/read.h"
#include "operator/api/spec_json.h"
#include "operator/api/validate.h"
#include "operator/local/memory_api.h"
#include "operator/local/pod_command.h"
#include "operator/plan/explain.h"
#include "operator/plan/manifest.h"
#include "operator/plan/plan.h"
#include "tests/sanitized.h"

namespace tj {
namespace {
using nlohmann::json;

/// As the operator would look at it without validation.
TrainingJob unchecked(const json& manifest) {
  auto job = job_from_json(manifest);
  EXPECT_TRUE(job.ok());
  job->spec_error.reset();
  job->spec = spec_from_json(read::object_at(manifest, "spec"));
  job->spec.worker_count = 1;
  job->meta.ns = "default";
  job->meta.uid = "u-1";
  job->status.excluded_nodes = {"n1"};
  return *job;
}

/// Up to the gang's start, with the pods as a server would show them.
void plan_to_the_end(const TrainingJob& job, const Pod& pod) {
  Observed observed{.job = job, .now = TimePoint{std::chrono::hours{1}}};
  for (int round = 0; round < 3; ++round) {
    observed.job.status = plan(observed).status;
    if (round == 0) observed.pods = {pod};
  }
  (void)status_patch(job, observed.job.status).dump();
}

json created(const TrainingJob& job, ObjectStore& store) {
  const auto pod =
      store.create(Resource::pods, "default", make_pod(job, {.worker_index = 0, .attempt = 0}));
  return pod ? *pod : json();
}

/// All; under a sanitizer so many that nearly every place and every value is among them.
std::vector<HostileManifest> hostile_manifests() {
  return kIsSanitized ? some_hostile_manifests(800, 1) : all_hostile_manifests();
}

TEST(Hostile, nothing_throws_whatever_a_template_holds) {
  for (const auto& [what, manifest] : hostile_manifests()) {
    SCOPED_TRACE(what);
    ASSERT_NO_THROW((void)validate_manifest(manifest));
    ASSERT_NO_THROW({
      const TrainingJob job = unchecked(manifest);
      ObjectStore store([] { return TimePoint{}; }, {});
      const json pod = created(job, store);
      if (pod.is_object()) {
        plan_to_the_end(job, *trim_pod(pod));
        for (const json& container : read::array_at(read::object_at(pod, "spec"), "containers"))
          (void)local_process(pod, container, LocalFacts{});
        (void)store.remove(Resource::pods, key_of(pod), json::object());
      }
      (void)make_service(job).dump();
      (void)make_network_policy(job, "tj-system").dump();
    });
  }
}

TEST(Hostile, what_passes_keeps_each_field_that_the_operator_does_not_set) {
  for (const auto& [what, manifest] : hostile_manifests()) {
    if (!validate_manifest(manifest).empty()) continue;
    SCOPED_TRACE(what);
    const TrainingJob job = unchecked(manifest);
    const json pod = make_pod(job, {.worker_index = 0, .attempt = 0});
    const json& spec = manifest["spec"]["replicaSpecs"]["Worker"]["template"]["spec"];
    for (const auto& [name, value] : spec.items()) {
      const bool is_changed = name == "containers" || name == "initContainers" ||
                              name == "tolerations" || name == "affinity" ||
                              name == "restartPolicy" || name == "hostname" || name == "subdomain";
      EXPECT_TRUE(is_changed || pod["spec"][name] == value) << name;
    }
  }
}

TEST(Hostile, the_good_one_is_good) {
  EXPECT_EQ(describe(validate_manifest(good_manifest("good"))), "");
}

}  // namespace
}  // namespace tj
