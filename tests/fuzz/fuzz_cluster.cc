// A job with its pods and nodes as the API server may send them, and what plan() makes of them.
#include <nlohmann/json.hpp>

#include "operator/api/json.h"
#include "operator/api/status_json.h"
#include "operator/plan/manifest.h"
#include "operator/plan/plan.h"
#include "tests/fuzz/fuzzed.h"

namespace {
using nlohmann::json;

const json& list_at(const json& world, const char* key) {
  static const json kNone = json::array();
  return world.contains(key) && world[key].is_array() ? world[key] : kNone;
}

tj::Observed observed_of(const json& world, tj::TrainingJob job) {
  tj::Observed observed{.job = std::move(job), .pods = {}, .service = {}, .now = {}};
  observed.now = tj::parse_time("2026-06-01T12:00:00Z").value();
  for (const json& object : list_at(world, "pods"))
    if (const auto pod = tj::trim_pod(object)) observed.pods.push_back(*pod);
  for (const json& object : list_at(world, "nodes"))
    if (const auto node = tj::trim_node(object)) observed.nodes.push_back(*node);
  for (const json& object : list_at(world, "services"))
    if (const auto service = tj::trim_service(object)) observed.service = *service;
  for (const json& text : list_at(world, "progress")) {
    const auto document = text.is_string() ? tj::from_progress_document(text.get<std::string>())
                                           : tj::from_progress_document(text.dump());
    if (!document || observed.pods.empty()) continue;
    observed.progress = {.pod_uid = observed.pods[0].meta.uid, .document = *document};
  }
  return observed;
}

void check_status(const tj::JobStatus& status) {
  const json written = tj::to_json(status);
  (void)written.dump();
  const json again = tj::to_json(tj::status_from_json(written));
  TJ_CHECK(again == written, "what was read of a status is what was written");
}

/// Steps in which the world stays as it is: time alone goes on.
void live(tj::Observed observed) {
  for (int step = 0; step < 4; ++step) {
    const tj::Plan plan = tj::plan(observed);
    (void)tj::to_text(plan, observed.job);
    check_status(plan.status);
    (void)tj::status_patch(observed.job, plan.status).dump();
    for (const auto& event : plan.events)
      (void)tj::make_event(observed.job, event, observed.now).dump();
    if (plan.requeue_after) TJ_CHECK(plan.requeue_after->count() >= 0, "time does not go back");
    observed.job.status = plan.status;
    observed.now += plan.requeue_after.value_or(std::chrono::minutes(10));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const json world = json::parse(data, data + size, nullptr, false);
  if (!world.is_object()) return 0;
  for (const json& object : list_at(world, "jobs")) {
    auto job = tj::job_from_json(object);
    if (!job) continue;
    check_status(job->status);
    live(observed_of(world, *std::move(job)));
  }
  return 0;
}
