#include "tests/sim/user.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace tj::sim {
namespace {

using nlohmann::json;

constexpr const char* kNames[] = {"a", "b", "c"};  // few, so that they are used again
constexpr const char* kNamespace = "default";

}  // namespace

json User::draw_template() {
  const std::string image = "image-" + std::to_string(++templates_drawn_);
  return {{"spec", {{"containers", json::array({{{"name", "main"}, {"image", image}}})}}}};
}

void User::draw_policies(json& spec) {
  Dice& dice = parts_.dice;
  json& run = spec["runPolicy"] = json::object();
  if (dice.percent(70)) run["maxRestarts"] = dice.between(0, 4);
  if (dice.percent(70)) run["restartBackoffSeconds"] = dice.percent(50) ? 0 : dice.between(1, 300);
  if (dice.percent(10)) run["suspend"] = true;
  if (dice.percent(10)) run["activeDeadlineSeconds"] = dice.between(1, 600);
  if (dice.percent(10)) run["startDeadlineSeconds"] = dice.between(1, 300);
  if (dice.percent(15)) run["ttlSecondsAfterFinished"] = dice.between(0, 300);
  if (dice.percent(15)) run["restartBudgetResetSeconds"] = dice.between(1, 300);
  if (dice.percent(40)) run["heartbeatTimeoutSeconds"] = dice.between(10, 120);
  if (dice.percent(20)) run["restartBudgetResetOnProgress"] = false;
  constexpr const char* kCleanPods[] = {"Running", "All", "None"};
  if (dice.percent(30)) run["cleanPodPolicy"] = dice.pick(kCleanPods);
  if (dice.percent(15)) spec["successPolicy"] = "Worker0";
  if (dice.percent(40)) {
    spec["nodeLoss"] = {{"toleranceSeconds", dice.between(1, 60)},
                        {"forceDeleteSeconds", dice.between(0, 60)},
                        {"excludeSeconds", dice.between(1, 600)}};
  }
  if (!dice.percent(30)) return;
  constexpr const char* kActions[] = {"Restart", "RestartIgnoringBudget", "Fail",
                                      "ExcludeNodeAndRestart"};
  json rules = json::array();
  for (int left = dice.between(1, 3); left > 0; --left) {
    json rule{{"action", dice.pick(kActions)}};
    const int kind = dice.below(4);
    if (kind == 0) rule["exitCodes"] = {1, 78, dice.between(1, 255)};
    if (kind == 1) rule["signals"] = {9, 11};
    if (kind == 2) rule["conditions"] = {"DisruptionTarget"};
    if (kind == 3) rule["causes"] = {"OOMKilled", "NodeLost", "PodDeleted", "Hung"};
    rules.push_back(std::move(rule));
  }
  spec["failurePolicy"]["rules"] = std::move(rules);
}

json User::draw_spec() {
  Dice& dice = parts_.dice;
  const int replicas = dice.percent(80) ? dice.between(1, 4) : dice.between(1, 8);
  json spec{
      {"replicaSpecs", {{"Worker", {{"replicas", replicas}, {"template", draw_template()}}}}}};
  if (dice.percent(80)) draw_policies(spec);
  if (dice.percent(10)) spec["masterPort"] = dice.between(20000, 30000);
  return spec;
}

bool User::create_job() {
  const std::string name = parts_.dice.pick(kNames);
  if (parts_.mirror.job(ObjectKey{kNamespace, name}) != nullptr) return false;
  const json job{{"apiVersion", "kubebrain.io/v1"},
                 {"kind", "TrainingJob"},
                 {"metadata", {{"name", name}, {"namespace", kNamespace}}},
                 {"spec", draw_spec()}};
  parts_.trace.note("user: creates job " + name + " " + job["spec"].dump());
  const auto created = parts_.store.create(Resource::training_jobs, kNamespace, job);
  TJ_CHECK(created.ok(), created.ok() ? "" : describe(created.error()));
  return true;
}

const JobFacts* User::any_job() {
  std::vector<const JobFacts*> jobs;
  for (const auto& [uid, job] : parts_.mirror.jobs()) {
    if (!job.is_gone) jobs.push_back(&job);
  }
  if (jobs.empty()) return nullptr;
  return parts_.dice.pick(jobs);
}

bool User::delete_job() {
  const JobFacts* known = any_job();
  if (known == nullptr) return false;
  const ObjectKey key = known->key;
  parts_.trace.note("user: deletes job " + key.name);
  (void)parts_.store.remove(Resource::training_jobs, key);
  return true;
}

/// A merge patch of the spec that the resource's rules allow.
json User::draw_change(const JobFacts& job) {
  Dice& dice = parts_.dice;
  switch (dice.below(6)) {
    case 0: return {{"runPolicy", {{"maxRestarts", dice.between(0, 6)}}}};
    case 1: return {{"runPolicy", {{"activeDeadlineSeconds", dice.between(1, 600)}}}};
    case 2: return {{"replicaSpecs", {{"Worker", {{"replicas", dice.between(1, 6)}}}}}};
    case 3:
      if (job.is_suspended) {
        json change{{"replicaSpecs", {{"Worker", {{"template", draw_template()}}}}}};
        if (dice.percent(30)) change["masterPort"] = dice.between(20000, 30000);
        if (dice.percent(30)) change["runPolicy"]["suspend"] = false;
        return change;
      }
      break;
    default: break;
  }
  return {{"runPolicy", {{"suspend", !job.is_suspended}}}};
}

bool User::change_job() {
  const JobFacts* job = any_job();
  if (job == nullptr) return false;
  const ObjectKey key = job->key;
  const json change = draw_change(*job);
  parts_.trace.note("user: changes job " + key.name + " " + change.dump());
  const auto changed = parts_.store.patch(Resource::training_jobs, key, {{"spec", change}});
  TJ_CHECK(changed.ok(), changed.ok() ? "" : describe(changed.error()));
  return true;
}

bool User::delete_pod() {
  const auto& pods = parts_.mirror.pods();
  if (pods.empty()) return false;
  const PodFacts pod = std::next(pods.begin(), parts_.dice.below(pods.size()))->second;
  if (pod.is_marked) return false;
  parts_.trace.note("user: deletes pod " + pod.key.name);
  (void)parts_.store.remove(Resource::pods, pod.key);
  return true;
}

bool User::place_foreign_pod() {
  for (const auto& [uid, pod] : parts_.mirror.pods()) {
    if (!pod.job_uid.empty()) continue;
    const PodFacts foreign = pod;
    parts_.trace.note("user: removes the foreign pod " + foreign.key.name);
    (void)parts_.store.finish_delete(foreign.key, foreign.uid);
    return true;
  }
  const std::string job = parts_.dice.pick(kNames);
  const std::string name = job + "-worker-" + std::to_string(parts_.dice.below(3));
  json meta{{"name", name}, {"namespace", kNamespace}};
  if (parts_.dice.percent(50)) {
    meta["labels"] = {{"job-name", job},
                      {"kubebrain.io/trainingjob", job},
                      {"kubebrain.io/worker-index", "0"},
                      {"kubebrain.io/attempt", "0"}};
  }
  const json container{{"name", "x"}, {"image", "x"}};
  const json pod{{"metadata", meta}, {"spec", {{"containers", json::array({container})}}}};
  if (!parts_.store.create(Resource::pods, kNamespace, pod).ok()) return false;
  parts_.trace.note("user: creates a foreign pod " + name);
  return true;
}

}  // namespace tj::sim
