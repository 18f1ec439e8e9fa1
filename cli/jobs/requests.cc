#include "cli/jobs/requests.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "operator/api/json.h"
#include "operator/api/read.h"
#include "operator/plan/manifest.h"

namespace tj {
namespace {

using nlohmann::json;

constexpr std::size_t kNearNamesMax = 3;

const json& meta_of(const json& object) { return read::object_at(object, "metadata"); }
std::string name_of(const json& object) { return read::string_at(meta_of(object), "name"); }

/// The namespace of a job that was read, else that of the session.
std::string ns_of(const Session& session, const json& job) {
  const std::string ns = read::string_at(meta_of(job), "namespace");
  return ns.empty() ? session.ns() : ns;
}

/// Levenshtein's distance, of texts of at most 253 characters.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

Result<json> ask(Session& session, const Request& request) {
  auto answer = session.call(request);
  if (!answer) return explained(answer.error(), request);
  return answer;
}

Result<std::vector<json>> ask_all(Session& session, Request request) {
  request.verb = Verb::list;
  auto answer = session.list(request);
  if (!answer) return explained(answer.error(), request);
  return answer;
}

std::string where(const std::string& ns) {
  return ns.empty() ? "in all namespaces" : "in the namespace " + ns;
}

/// Which of the names that are there was meant; nothing where they can't be listed.
Error not_found(Session& session, const std::string& name) {
  std::string message = "there is no TrainingJob of this name " + where(session.ns());
  std::vector<std::string> names;
  if (const auto jobs = list_jobs(session, {})) {
    for (const json& job : *jobs) names.push_back(name_of(job));
  }
  return Error{Code::not_found, message + did_you_mean(name, names), name, {}};
}

/// A worker's pod of the job, or the Service or policy of its name.
bool is_about(const json& event, const json& job) {
  const json& about = read::object_at(event, "involvedObject");
  const std::string name = read::string_at(about, "name");
  const std::string kind = read::string_at(about, "kind");
  const std::string job_name = name_of(job);
  if (kind == names::kKind) {
    const std::string uid = read::string_at(about, "uid");
    return name == job_name && (uid.empty() || uid == read::string_at(meta_of(job), "uid"));
  }
  if (kind == "Pod") {
    const std::string prefix = job_name + "-worker-";
    return name.starts_with(prefix) && name.size() > prefix.size() &&
           std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                       [](char c) { return c >= '0' && c <= '9'; });
  }
  return (kind == "Service" || kind == "NetworkPolicy") && name == job_name;
}

/// Of events of one second, the order of their versions is that in which they were written.
std::pair<std::size_t, std::string> version_of(const json& object) {
  std::string version = read::string_at(meta_of(object), "resourceVersion");
  return {version.size(), std::move(version)};
}

/// When it happened last: newer servers leave the old fields null.
std::string time_of(const json& event) {
  for (const char* field : {"lastTimestamp", "eventTime", "firstTimestamp"}) {
    const std::string time = read::string_at(event, field);
    if (!time.empty()) return time;
  }
  return read::string_at(meta_of(event), "creationTimestamp");
}

}  // namespace

Result<std::string> job_name_of(const std::string& argument) {
  std::string name = argument;
  if (const auto slash = argument.find('/'); slash != std::string::npos) {
    const std::string kind = argument.substr(0, slash);
    const bool is_ours = kind == "trainingjob" || kind == "trainingjobs" || kind == "tj" ||
                         kind == "trainingjob.kubebrain.io" || kind == "trainingjobs.kubebrain.io";
    if (!is_ours)
      return Error{
          Code::invalid, "is no TrainingJob; write trainingjob/NAME or NAME", argument, {}};
    name = argument.substr(slash + 1);
  }
  const bool is_name =
      !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
      });
  if (is_name) return name;
  return Error{Code::invalid,
               "can be no job's name: these have lower-case letters, digits and - only",
               argument,
               {}};
}

Result<json> get_job(Session& session, const std::string& name) {
  const Request request{
      .verb = Verb::get, .resource = Resource::training_jobs, .ns = session.ns(), .name = name};
  auto job = ask(session, request);
  if (!job && job.error().code == Code::not_found) return not_found(session, name);
  return job;
}

Result<std::vector<json>> list_jobs(Session& session, const JobSelection& selection) {
  auto jobs = ask_all(session, {.resource = Resource::training_jobs,
                                .ns = selection.all_namespaces ? "" : session.ns(),
                                .label_selector = selection.label_selector});
  if (!jobs) return jobs;
  const auto key = [](const json& job) {
    return std::pair(read::string_at(meta_of(job), "namespace"), name_of(job));
  };
  std::stable_sort(jobs->begin(), jobs->end(),
                   [&](const json& a, const json& b) { return key(a) < key(b); });
  for (json& job : *jobs) {  // a list's items need not say what they are
    job["apiVersion"] = names::kApiVersion;
    job["kind"] = names::kKind;
  }
  return jobs;
}

Result<std::vector<json>> pods_of(Session& session, const json& job) {
  auto pods = ask_all(session, {.resource = Resource::pods,
                                .ns = ns_of(session, job),
                                .label_selector = job_selector(name_of(job))});
  if (!pods) return pods;
  const std::string uid = read::string_at(meta_of(job), "uid");
  std::erase_if(*pods, [&](const json& pod) {
    const auto& owners = read::array_at(meta_of(pod), "ownerReferences");
    return std::none_of(owners.begin(), owners.end(),
                        [&](const json& owner) { return read::string_at(owner, "uid") == uid; });
  });
  const auto rank = [](const json& pod) {
    const auto trimmed = trim_pod(pod);
    return trimmed ? trimmed->worker_index : -1;
  };
  std::stable_sort(pods->begin(), pods->end(),
                   [&](const json& a, const json& b) { return rank(a) < rank(b); });
  return pods;
}

Result<std::vector<json>> events_of(Session& session, const json& job) {
  auto events = ask_all(session, {.resource = Resource::events, .ns = ns_of(session, job)});
  if (!events) return events;
  // Of an earlier job of this name, whose pods had these names, too.
  const std::string created = read::string_at(meta_of(job), "creationTimestamp");
  std::erase_if(*events, [&](const json& event) {
    return !is_about(event, job) || time_of(event) < created;
  });
  std::stable_sort(events->begin(), events->end(), [](const json& a, const json& b) {
    return std::pair(time_of(a), version_of(a)) < std::pair(time_of(b), version_of(b));
  });
  return events;
}

Result<json> patch_job(Session& session, const std::string& name, const json& patch) {
  return ask(session, {.verb = Verb::patch,
                       .resource = Resource::training_jobs,
                       .ns = session.ns(),
                       .name = name,
                       .body = patch.dump()});
}

Result<void> delete_job(Session& session, const json& job) {
  const json options{{"apiVersion", "v1"},
                     {"kind", "DeleteOptions"},
                     {"propagationPolicy", "Background"},
                     {"preconditions", {{"uid", read::string_at(meta_of(job), "uid")}}}};
  const auto answer = ask(session, {.verb = Verb::remove,
                                    .resource = Resource::training_jobs,
                                    .ns = ns_of(session, job),
                                    .name = name_of(job),
                                    .body = options.dump()});
  if (!answer) return answer.error();
  return {};
}

std::string did_you_mean(const std::string& wanted, const std::vector<std::string>& names) {
  std::string question;
  for (const std::string& name : near_names(wanted, names))
    question += (question.empty() ? "; did you mean " : ", or ") + name;
  return question.empty() ? "" : question + "?";
}

std::vector<std::string> near_names(const std::string& wanted,
                                    const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& name : names) {
    const std::size_t changes = distance(wanted, name);
    const bool holds =
        wanted.size() >= 3 && (name.find(wanted) != name.npos || wanted.find(name) != name.npos);
    if (changes <= 2 || holds) near.emplace_back(changes, name);
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> found;
  for (auto& [changes, name] : near) {
    if (found.size() < kNearNamesMax) found.push_back(std::move(name));
  }
  return found;
}

Error explained(const Error& error, const Request& request) {
  Error said = error;
  const std::string resource = to_string(request.resource);
  const bool is_ours = request.resource == Resource::training_jobs;
  const bool is_unknown_user = error.message.find("HTTP 401") != std::string::npos;
  if (error.code == Code::forbidden && !is_unknown_user) {
    said.message = "you may not " + std::string(to_string(request.verb)) + " " + resource + " " +
                   where(request.ns) + "; the right that is missing: {apiGroups: [\"" +
                   (is_ours ? names::kApiGroup : "") + "\"], resources: [" + resource +
                   "], verbs: [" + to_string(request.verb) +
                   "]}. The server says: " + error.message;
  } else if (error.code == Code::not_found && is_ours && request.name.empty()) {
    said.message =
        "this cluster knows no TrainingJobs: the operator is not installed (" + error.message + ")";
  }
  return said;
}

}  // namespace tj
