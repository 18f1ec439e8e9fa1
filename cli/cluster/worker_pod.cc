#include "cli/cluster/worker_pod.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "contract/names.h"
#include "operator/api/pod_json.h"
#include "operator/api/read.h"

namespace tj {
namespace {

using nlohmann::json;
using namespace read;

Error wrong(Code code, const std::string& message) { return Error{code, message, "", {}}; }

/// Why there is no such pod.
Error no_worker(Session& session, const std::string& job, int rank) {
  const auto found = session.call(
      {.verb = Verb::get, .resource = Resource::training_jobs, .ns = session.ns(), .name = job});
  if (!found && found.error().code == Code::not_found)
    return wrong(Code::not_found,
                 "there is no TrainingJob \"" + job + "\" in namespace " + session.ns());
  if (!found) return found.error();
  const std::string phase = string_at(object_at(*found, "status"), "phase");
  const json& spec = object_at(object_at(object_at(*found, "spec"), "replicaSpecs"), "Worker");
  const int count = number_at(spec, "replicas", 1);
  std::string text = "worker " + std::to_string(rank) + " of " + job + " has no pod";
  if (rank >= count) {
    text += "; the job has " + std::to_string(count) + ", the last rank is " +
            std::to_string(count - 1);
  } else if (!phase.empty()) {
    text += "; the job's phase is " + phase;
  }
  return wrong(Code::not_found, text);
}

std::vector<std::string> container_names(const json& pod) {
  std::vector<std::string> names;
  for (const json& container : array_at(object_at(pod, "spec"), "containers"))
    names.push_back(string_at(container, "name"));
  return names;
}

Result<std::string> container_of(const json& pod, const std::string& wanted) {
  const auto names = container_names(pod);
  if (wanted.empty()) return string_at(main_container(pod), "name");
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return wanted;
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  return wrong(Code::invalid, "--container is \"" + wanted + "\"; the pod has " + known);
}

}  // namespace

void add_rank_flag(CLI::App& command, int& rank) {
  command.add_option("--rank", rank, "which worker (0)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
}

void add_container_flag(CLI::App& command, std::string& container) {
  command.add_option("-c,--container", container, "which container (the one that trains)")
      ->type_name("NAME");
}

Result<WorkerPlace> find_worker(Session& session, const std::string& job, int rank,
                                const std::string& container) {
  WorkerPlace place{.ns = session.ns(), .pod = names::worker_pod(job, rank), .container = {}};
  const auto pod = session.call(
      {.verb = Verb::get, .resource = Resource::pods, .ns = place.ns, .name = place.pod});
  if (!pod && pod.error().code == Code::not_found) return no_worker(session, job, rank);
  if (!pod) return pod.error();
  const std::string phase = string_at(object_at(*pod, "status"), "phase");
  if (phase != "Running") {
    return wrong(Code::unavailable, "worker " + std::to_string(rank) + " of " + job + " (pod " +
                                        place.pod + ") is " + (phase.empty() ? "new" : phase) +
                                        "; it must be Running");
  }
  const auto name = container_of(*pod, container);
  if (!name) return name.error();
  place.container = *name;
  return place;
}

}  // namespace tj
