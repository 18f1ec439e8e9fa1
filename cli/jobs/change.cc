#include "cli/jobs/change.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/exit.h"
#include "cli/jobs/requests.h"
#include "cli/jobs/screen.h"
#include "operator/api/json.h"
#include "operator/api/policy_fields.h"

namespace tj {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr int kConflictsMax = 5;    // of a write that somebody else was before
constexpr int kResumeTriesMax = 5;  // of the second update of a restart
constexpr seconds kLocalEndMax{60};

void say(const json& job, const std::string& what, const Output& output) {
  const std::string name = resource_name(job.at("metadata").value("name", ""));
  print(output.empty() ? name + " " + what + "\n" : formatted(job, output));
}

Error ended(const TrainingJob& job, const std::string& why) {
  return Error{Code::conflict,
               std::string("has ended (") + to_string(job.status.phase) + "), and " + why,
               job.meta.name,
               {}};
}

/// A local run takes no changes: its API server is inside of its `tj run`.
std::optional<Error> refuse_local(const Place& place, const std::string& job) {
  if (!place.is_local()) return std::nullopt;
  return Error{Code::invalid,
               "a local run can't be changed: end it (tj delete --local) and start another one",
               job,
               {}};
}

/// The job that a person names, where it can be changed.
Result<TrainingJob> job_to_change(Place& place, const std::string& argument) {
  const auto name = job_name_of(argument);
  if (!name) return name.error();
  if (const auto refusal = refuse_local(place, *name)) return *refusal;
  const auto object = get_job(place.session(), *name);
  if (!object) return object.error();
  return job_from_json(*object);
}

json suspend_patch(bool suspended) { return {{"spec", {{"runPolicy", {{"suspend", suspended}}}}}}; }

/// The second update of a restart. It is what the person waits for: a busy server is asked again.
Result<json> resume(Session& session, const std::string& name) {
  for (int tries = 1;; ++tries) {
    auto resumed = patch_job(session, name, suspend_patch(false));
    const bool is_last = tries == kResumeTriesMax;
    if (resumed || is_last || !may_pass(resumed.error())) return resumed;
    pause(std::chrono::milliseconds{500});
  }
}

Result<void> gone(Place& place, const json& job, const DeleteOptions& options) {
  const auto until = options.timeout ? Clock::now() + *options.timeout : Clock::time_point::max();
  const TrainingJob read = job_from_json(job).value();
  while (true) {
    const auto now = get_job(place.session(), read.meta.name);
    const bool is_same = now && job_from_json(*now).value().meta.uid == read.meta.uid;
    if (!now && now.error().code != Code::not_found && !may_pass(now.error())) return now.error();
    if (!is_same && (now || now.error().code == Code::not_found)) {
      const auto pods = pods_of(place.session(), job);
      // Whoever may not list pods has seen the job go.
      if (!pods && !may_pass(pods.error())) return {};
      if (pods && pods->empty()) return {};
    }
    if (Clock::now() >= until) {
      return Error{Code::timeout,
                   "is not gone within " + std::to_string(options.timeout->count()) + " s",
                   read.meta.name,
                   {}};
    }
    pause(options.pace.every);
  }
}

Result<void> delete_local(Place& place, const std::string& name) {
  const RunEntry* run = place.run_of(name);
  if (run == nullptr) return Error{Code::not_found, "there is no local run of this name", name, {}};
  const auto end = end_run(*run, kLocalEndMax, place.registry());
  const bool has_ended = end || end.error().code == Code::not_found;
  if (!has_ended) return end;
  forget_run(*run, place.registry());
  print(resource_name(name) + " deleted; its files stay in " + run->folder.string() + "\n");
  return {};
}

int delete_one(Place& place, const std::string& argument, const DeleteOptions& options,
               std::vector<json>& deleted) {
  const auto name = job_name_of(argument);
  if (!name) return fail(name.error());
  if (place.is_local()) {
    const auto done = delete_local(place, *name);
    return done ? tj_exit::kSucceeded : fail(done.error());
  }
  auto job = get_job(place.session(), *name);
  if (!job) return fail(job.error());
  if (const auto done = delete_job(place.session(), *job); !done) return fail(done.error());
  say(*job, "deleted", options.output);
  deleted.push_back(*std::move(job));
  return tj_exit::kSucceeded;
}

}  // namespace

int set_suspended(Place& place, const std::string& argument, bool suspended, const Output& output) {
  const auto job = job_to_change(place, argument);
  if (!job) return fail(job.error());
  if (is_terminal(job->status.phase))
    return fail(ended(*job, suspended ? "there is nothing to suspend" : "stays so"));
  const auto changed = patch_job(place.session(), job->meta.name, suspend_patch(suspended));
  if (!changed) return fail(changed.error());
  const bool was_so = job->spec.run.suspend == suspended;
  const std::string done = suspended ? "suspended" : "resumed";
  say(*changed, was_so ? "unchanged: it was " + done + " before" : done, output);
  return tj_exit::kSucceeded;
}

json restart_patch(const TrainingJob& job, TimePoint now) {
  const auto ms = now.time_since_epoch().count() % 1000;
  const std::string digits = std::to_string(1000 + ms).substr(1);
  std::string time = format_time(now);  // two restarts of one second are two
  time.insert(time.size() - 1, "." + digits);
  json patch = suspend_patch(true);
  patch["metadata"]["resourceVersion"] = job.meta.resource_version;
  patch["spec"]["replicaSpecs"]["Worker"]["template"]["metadata"]["annotations"]
       [kAnnotationRestartedAt] = time;
  return patch;
}

int restart_job(Place& place, const std::string& argument, const Output& output) {
  for (int tries = 1;; ++tries) {
    const auto job = job_to_change(place, argument);
    if (!job) return fail(job.error());
    const std::string& name = job->meta.name;
    if (is_terminal(job->status.phase))
      return fail(ended(*job, "stays so: delete it and submit it again"));
    if (job->spec.run.suspend)
      return fail({Code::conflict, "is suspended: tj resume begins a new attempt", name, {}});
    const auto now =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    const auto marked = patch_job(place.session(), name, restart_patch(*job, now));
    const bool is_late = !marked && marked.error().code == Code::conflict;
    if (is_late && tries < kConflictsMax) continue;
    if (!marked) return fail(marked.error());
    const auto resumed = resume(place.session(), name);
    if (!resumed) {
      complain({Code::internal, "it is suspended now; tj resume " + name + " goes on", name, {}});
      return fail(resumed.error());
    }
    say(*resumed, "restarted: a new attempt begins", output);
    return tj_exit::kSucceeded;
  }
}

int scale_job(Place& place, const std::string& argument, int worker_count, const Output& output) {
  const auto job = job_to_change(place, argument);
  if (!job) return fail(job.error());
  if (is_terminal(job->status.phase)) return fail(ended(*job, "stays so"));
  const json patch{{"spec", {{"replicaSpecs", {{"Worker", {{"replicas", worker_count}}}}}}}};
  const auto changed = patch_job(place.session(), job->meta.name, patch);
  if (!changed) return fail(changed.error());
  const int before = job->spec.worker_count;
  std::string what = "unchanged: it had " + std::to_string(before) + " workers before";
  if (before != worker_count) {
    what = "scaled from " + std::to_string(before) + " to " + std::to_string(worker_count) +
           " workers" + (job->spec.run.suspend ? "" : ": a new attempt begins");
  }
  say(*changed, what, output);
  return tj_exit::kSucceeded;
}

int delete_jobs(Place& place, const DeleteOptions& options) {
  int exit_code = tj_exit::kSucceeded;
  std::vector<json> deleted;
  for (const std::string& job : options.jobs) {
    const int code = delete_one(place, job, options, deleted);
    if (exit_code == tj_exit::kSucceeded) exit_code = code;
  }
  if (!options.wait) return exit_code;
  for (const json& job : deleted) {
    const auto left = gone(place, job, options);
    if (left) continue;
    const int code = fail(left.error());
    if (exit_code == tj_exit::kSucceeded)
      exit_code = left.error().code == Code::timeout ? tj_exit::kTimedOut : code;
  }
  return exit_code;
}

}  // namespace tj
