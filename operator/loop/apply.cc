#include "operator/loop/apply.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "operator/api/json.h"
#include "operator/loop/batch.h"
#include "operator/plan/manifest.h"

namespace tj {
namespace {
using nlohmann::json;

ApplyOutcome failure(const Error& error) {
  return {.complete = false,
          .retry_after = error.retry_after.value_or(std::chrono::milliseconds{0}),
          .trouble = describe(error)};
}

ApplyOutcome refused(Refusal refusal, const std::string& message) {
  return {.complete = false, .create_error = message, .refusal = refusal, .trouble = message};
}

ApplyOutcome not_yet(std::string trouble) {
  return {.complete = false, .trouble = std::move(trouble)};
}

/// Keeps the first failure of many requests.
void merge(ApplyOutcome& total, ApplyOutcome one) {
  if (one.stale) total.stale = one.stale;
  if (total.complete && !one.complete) {
    const auto stale = total.stale;
    total = std::move(one);
    total.stale = stale;
  }
}

const char* kind_of(Resource resource) { return resource == Resource::pods ? "pod" : "Service"; }

template <typename T>
std::vector<T> select(const std::vector<Action>& actions) {
  std::vector<T> selected;
  for (const Action& action : actions) {
    if (const auto* match = std::get_if<T>(&action)) selected.push_back(*match);
  }
  return selected;
}

}  // namespace

void Applier::create(const TrainingJob& job, const std::vector<Action>& actions, Done done) {
  auto pods = select<CreatePod>(actions);
  if (select<CreateService>(actions).empty()) return create_pods(job, std::move(pods), done);
  Child service{.resource = Resource::services,
                .key = job.meta.key(),
                .job_uid = job.meta.uid,
                .body = make_service(job).dump()};
  create_child(std::move(service), [this, job, pods = std::move(pods), done](ApplyOutcome outcome) {
    if (!outcome.complete) return done(std::move(outcome));
    create_pods(job, pods, [done, stale = outcome.stale](ApplyOutcome rest) {
      if (stale) rest.stale = stale;
      done(std::move(rest));
    });
  });
}

void Applier::create_pods(const TrainingJob& job, std::vector<CreatePod> pods, Done done) {
  const BatchSize size{.count = pods.size(), .width_first = 1, .width_max = in_flight_max_};
  auto total = std::make_shared<ApplyOutcome>();
  const auto start = [this, job, pods = std::move(pods), total](std::size_t index,
                                                                const auto& ended) {
    const CreatePod& action = pods[index];
    Child child{.resource = Resource::pods,
                .key = {job.meta.ns, names::worker_pod(job.meta.name, action.worker_index)},
                .job_uid = job.meta.uid,
                .attempt = action.attempt,
                .body = make_pod(job, action).dump()};
    create_child(std::move(child), [total, ended](ApplyOutcome outcome) {
      const bool ok = outcome.complete;
      merge(*total, std::move(outcome));
      ended(ok);
    });
  };
  run_batch(size, start, [total, done = std::move(done)] { done(*total); });
}

void Applier::create_child(Child child, Verdict verdict) {
  Request request{.verb = Verb::create,
                  .resource = child.resource,
                  .ns = child.key.ns,
                  .body = std::exchange(child.body, {})};
  api_.send(std::move(request), [this, child, verdict](Result<std::string> answer) {
    if (answer) {
      view_.wrote(child.resource, *answer);
      return verdict({});
    }
    const std::string name = std::string(kind_of(child.resource)) + " " + child.key.name;
    const std::string refusal = name + " was refused: " + answer.error().message;
    switch (answer.error().code) {
      case Code::conflict: return inspect_holder(child, verdict);
      case Code::invalid: return verdict(refused(Refusal::invalid, refusal));
      case Code::forbidden: return verdict(refused(Refusal::denied, refusal));
      default: return verdict(failure(answer.error()));
    }
  });
}

/// The name is taken. Perhaps by ourselves: a creation whose answer was lost, or a cache that is
/// behind. Only the live object can tell.
void Applier::inspect_holder(const Child& child, const Verdict& verdict) {
  Request request{
      .verb = Verb::get, .resource = child.resource, .ns = child.key.ns, .name = child.key.name};
  api_.send(std::move(request), [this, child, verdict](Result<std::string> answer) {
    if (answer) return verdict(judge_holder(child, *answer));
    if (answer.error().code == Code::not_found) {
      return verdict(not_yet(child.key.name + " has just gone"));
    }
    verdict(failure(answer.error()));
  });
}

ApplyOutcome Applier::judge_holder(const Child& child, const std::string& body) {
  const auto object = parse_object(body);
  const auto holder = object ? trim_pod(*object) : Error{Code::internal, "not an object", "", {}};
  if (!holder) return failure(holder.error());
  const std::string name = std::string(kind_of(child.resource)) + " " + child.key.name;
  if (holder->meta.controller_uid != child.job_uid) {
    return refused(Refusal::name_taken, name + " exists already and belongs to another owner");
  }
  const bool was_news = view_.wrote(child.resource, body);
  if (holder->meta.deletion_time) return not_yet(name + " is still terminating");
  const bool is_pod = child.resource == Resource::pods;
  if (is_pod && holder->attempt != child.attempt) {
    return not_yet(name + " is of attempt " + std::to_string(holder->attempt));
  }
  ApplyOutcome outcome;
  // It is there, the stream has passed it, and yet the cache did not know: a line was lost.
  const bool is_known = is_pod ? view_.pods().find(child.key) != nullptr
                               : view_.services().find(child.key) != nullptr;
  if (!was_news && !is_known) outcome.stale = child.resource;
  return outcome;
}

void Applier::remove(const TrainingJob& job, const std::vector<Action>& actions, Done done) {
  auto pods = select<DeletePod>(actions);
  const BatchSize size{
      .count = pods.size(), .width_first = in_flight_max_, .width_max = in_flight_max_};
  auto total = std::make_shared<ApplyOutcome>();
  const auto start = [this, ns = job.meta.ns, pods = std::move(pods), total](std::size_t index,
                                                                             const auto& ended) {
    const DeletePod& action = pods[index];
    remove_pod({ns, action.name}, action.uid, [total, ended](ApplyOutcome outcome) {
      const bool ok = outcome.complete;
      merge(*total, std::move(outcome));
      ended(ok);
    });
  };
  run_batch(size, start, [total, done = std::move(done)] { done(*total); });
}

void Applier::remove_pod(const ObjectKey& key, const std::string& uid, const Verdict& verdict) {
  const json options{
      {"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"preconditions", {{"uid", uid}}}};
  Request request{.verb = Verb::remove,
                  .resource = Resource::pods,
                  .ns = key.ns,
                  .name = key.name,
                  .body = options.dump()};
  api_.send(std::move(request), [this, key, uid, verdict](Result<std::string> answer) {
    if (!answer) {
      const Code code = answer.error().code;
      if (code != Code::not_found && code != Code::conflict) {
        return verdict(failure(answer.error()));
      }
      view_.forget_pod(key, uid);
      return verdict({});
    }
    // A graceful deletion answers with the pod, marked; an immediate one with its last state or a
    // Status. The mark is worth knowing: a pod that leaves is not deleted again.
    const auto object = parse_object(*answer);
    const bool is_marked = object && meta_from_json(*object).deletion_time.has_value();
    if (is_marked) view_.wrote(Resource::pods, *answer);
    verdict({});
  });
}

}  // namespace tj
