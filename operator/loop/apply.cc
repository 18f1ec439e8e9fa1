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
          .is_busy = error.code == Code::unavailable && error.retry_after.has_value(),
          .error = describe(error)};
}

ApplyOutcome refused(Refusal refusal, const std::string& message) {
  return {.complete = false, .create_error = message, .refusal = refusal, .error = message};
}

ApplyOutcome not_yet(std::string error) { return {.complete = false, .error = std::move(error)}; }

/// Keeps the first failure of many requests.
void merge(ApplyOutcome& total, ApplyOutcome one) {
  if (one.stale) total.stale = one.stale;
  if (total.complete && !one.complete) {
    const auto stale = total.stale;
    total = std::move(one);
    total.stale = stale;
  }
}

const char* kind_of(Resource resource) {
  if (resource == Resource::pods) return "pod";
  return resource == Resource::services ? "Service" : "NetworkPolicy";
}

/// The decision is as good as it was: nobody has changed the spec, deleted the job or gone on to
/// another attempt since.
bool is_still_so(const View& view, const TrainingJob& job) {
  const TrainingJob* now = view.jobs().find(job.meta.key());
  return now != nullptr && now->meta.uid == job.meta.uid && !now->meta.deletion_time &&
         now->meta.generation == job.meta.generation && now->status.attempt == job.status.attempt;
}

json delete_options(const std::string& uid) {
  return {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"preconditions", {{"uid", uid}}}};
}

/// A pod that the job owns, and that no longer says so in the label by which pods are watched.
bool is_unlabelled(const std::string& body, const std::string& job_uid,
                   const std::string& job_name) {
  const auto object = parse_object(body);
  const auto pod = object ? trim_pod(*object) : Error{Code::internal, "not an object", "", {}};
  return pod && pod->meta.controller_uid == job_uid && pod->job_name != job_name;
}

}  // namespace

/// A pause that the server asks for is the batch's affair, and no outcome.
void Applier::run(const BatchSize& size, StartChild start, Done done) {
  auto total = std::make_shared<ApplyOutcome>();
  const auto start_one = [start = std::move(start), total](std::size_t index, const auto& ended) {
    start(index, [total, ended](ApplyOutcome outcome) {
      RequestEnd end{.ok = outcome.complete, .busy_for = {}};
      if (outcome.is_busy) {
        end.busy_for = outcome.retry_after;
      } else {
        merge(*total, std::move(outcome));
      }
      ended(end);
    });
  };
  run_batch(size, pace_, alarm_, start_one, [total, done = std::move(done)](const BatchEnd& end) {
    if (end.gave_up_busy_for) {
      merge(*total, {.complete = false,
                     .retry_after = *end.gave_up_busy_for,
                     .error = "the API server stays too busy"});
    }
    done(*total);
  });
}

void Applier::create(const TrainingJob& job, const Actions& actions, Done done) {
  std::vector<Child> first;
  const auto add = [&](Resource resource, std::function<json()> make) {
    first.push_back({.resource = resource,
                     .key = job.meta.key(),
                     .job_uid = job.meta.uid,
                     .make = std::move(make)});
  };
  if (has_any<PutNetworkPolicy>(actions)) {
    add(Resource::network_policies,
        [job, ns = operator_ns_] { return make_network_policy(job, ns); });
  }
  if (has_any<DeleteNetworkPolicy>(actions)) {
    first.push_back({.resource = Resource::network_policies,
                     .key = job.meta.key(),
                     .job_uid = job.meta.uid,
                     .is_unwanted = true});
  }
  if (has_any<CreateService>(actions)) {
    add(Resource::services, [job] { return make_service(job); });
  }
  create_in_turn(std::move(first),
                 [this, job, pods = select<CreatePod>(actions), done](ApplyOutcome outcome) {
                   if (!outcome.complete) return done(std::move(outcome));
                   create_pods(job, pods, [done, stale = outcome.stale](ApplyOutcome rest) {
                     if (stale) rest.stale = stale;
                     done(std::move(rest));
                   });
                 });
}

/// One at a time: what comes first must be there for what comes next.
void Applier::create_in_turn(std::vector<Child> children, Done done) {
  if (children.empty()) return done({});
  Child child = std::move(children.front());
  children.erase(children.begin());
  create_child(std::move(child), [this, children = std::move(children),
                                  done = std::move(done)](ApplyOutcome outcome) {
    if (!outcome.complete || children.empty()) return done(std::move(outcome));
    create_in_turn(children, [done, stale = outcome.stale](ApplyOutcome rest) {
      if (stale) rest.stale = stale;
      done(std::move(rest));
    });
  });
}

void Applier::create_pods(const TrainingJob& job, std::vector<CreatePod> pods, Done done) {
  const BatchSize size{.count = pods.size(), .width_first = 1};
  const auto start = [this, job, pods = std::move(pods)](std::size_t index, const Done& ended) {
    if (!is_still_so(view_, job)) return ended(not_yet("the job has changed meanwhile"));
    const CreatePod& action = pods[index];
    create_child({.resource = Resource::pods,
                  .key = {job.meta.ns, names::worker_pod(job.meta.name, action.worker_index)},
                  .job_uid = job.meta.uid,
                  .job_name = job.meta.name,
                  .attempt = action.attempt,
                  .make = [&] { return make_pod(job, action); }},
                 [this, key = job.meta.key(), ended](ApplyOutcome outcome) {
                   if (!outcome.is_busy) worker_created_(key);
                   ended(std::move(outcome));
                 });
  };
  run(size, start, std::move(done));
}

void Applier::create_child(Child child, Done done) {
  if (child.is_unwanted) return inspect_holder(child, done);
  const std::string name = std::string(kind_of(child.resource)) + " " + child.key.name;
  Request request{.verb = Verb::create, .resource = child.resource, .ns = child.key.ns};
  try {
    request.body = child.make().dump();
  } catch (const std::exception& bug) {
    return done(refused(Refusal::internal, name + " can't be made: " + bug.what()));
  }
  // Of a thousand pods nothing is kept; a policy may have to be put in the place of another.
  if (child.resource == Resource::pods) child.make = nullptr;
  api_.send(std::move(request), [this, child, name, done](Result<std::string> answer) {
    if (answer) {
      view_.wrote(child.resource, *answer);
      return done({});
    }
    const std::string refusal = name + " was refused: " + answer.error().message;
    switch (answer.error().code) {
      case Code::conflict: return inspect_holder(child, done);
      case Code::invalid: return done(refused(Refusal::invalid, refusal));
      case Code::forbidden: return done(refused(Refusal::denied, refusal));
      default: return done(failure(answer.error()));
    }
  });
}

/// The name is taken. Perhaps by ourselves: a creation whose answer was lost, or a cache that is
/// behind. Only the live object can tell.
void Applier::inspect_holder(const Child& child, const Done& done) {
  Request request{
      .verb = Verb::get, .resource = child.resource, .ns = child.key.ns, .name = child.key.name};
  api_.send(std::move(request), [this, child, done](Result<std::string> answer) {
    if (answer && child.resource == Resource::network_policies) {
      return settle_network_policy(child, *answer, done);
    }
    const bool is_unseen = answer && child.resource == Resource::pods &&
                           is_unlabelled(*answer, child.job_uid, child.job_name);
    if (is_unseen) return remove_unseen(child, *answer, done);
    if (answer) return done(judge_holder(child, *answer));
    if (answer.error().code == Code::not_found) {
      if (child.is_unwanted) return done({});
      return done(not_yet(child.key.name + " has just gone"));
    }
    done(failure(answer.error()));
  });
}

/// A pod of ours that has lost the label by which pods are watched: nothing would be heard of it.
/// It goes, so that its rank can have one that is seen.
void Applier::remove_unseen(const Child& child, const std::string& body, const Done& done) {
  const auto object = parse_object(body);
  Request request{.verb = Verb::remove,
                  .resource = child.resource,
                  .ns = child.key.ns,
                  .name = child.key.name,
                  .body = delete_options(meta_from_json(*object).uid).dump()};
  api_.send(std::move(request), [name = child.key.name, done](const Result<std::string>& answer) {
    if (!answer && answer.error().code != Code::not_found) return done(failure(answer.error()));
    done(not_yet("pod " + name + " had lost its label " + names::kLabelTrainingJob +
                 ", and is made anew"));
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
  const bool is_pod = child.resource == Resource::pods;
  const bool is_known = view_.knows(child.resource, child.key);
  ApplyOutcome outcome;
  if (holder->meta.deletion_time) {
    outcome = not_yet(name + " is still terminating");
  } else if (is_pod && holder->attempt != child.attempt) {
    outcome = not_yet(name + " is of attempt " + std::to_string(holder->attempt));
  } else if (child.resource == Resource::services) {
    outcome = not_yet(name + " is there already, and says what the workers are made from");
  }
  // It is there, the stream has passed it, and yet the cache does not know: a line was lost.
  if (!was_news && !is_known) outcome.stale = child.resource;
  return outcome;
}

/// A policy of ours is there: it is replaced if it says something else, or taken away.
void Applier::settle_network_policy(const Child& child, const std::string& live, const Done& done) {
  const auto object = parse_object(live);
  const ObjectMeta meta = object ? meta_from_json(*object) : ObjectMeta{};
  if (child.is_unwanted && meta.controller_uid != child.job_uid) return done({});
  if (!child.is_unwanted) {
    ApplyOutcome outcome = judge_holder(child, live);
    json wanted = child.make();
    const bool is_right = object && object->value("spec", json()) == wanted["spec"];
    if (!outcome.complete || is_right) return done(std::move(outcome));
    wanted["metadata"]["resourceVersion"] = meta.resource_version;
    return change_policy(Verb::replace, child.key, wanted, done);
  }
  change_policy(Verb::remove, child.key, delete_options(meta.uid), done);
}

void Applier::change_policy(Verb verb, const ObjectKey& key, const json& body, const Done& done) {
  Request request{.verb = verb,
                  .resource = Resource::network_policies,
                  .ns = key.ns,
                  .name = key.name,
                  .body = body.dump()};
  api_.send(std::move(request), [key, verb, done](const Result<std::string>& answer) {
    const bool is_gone = verb == Verb::remove && !answer && answer.error().code == Code::not_found;
    if (answer || is_gone) return done({});
    if (answer.error().code != Code::forbidden) return done(failure(answer.error()));
    done(refused(Refusal::denied,
                 "NetworkPolicy " + key.name + " was refused: " + answer.error().message));
  });
}

void Applier::remove(const TrainingJob& job, const Actions& actions, Done done) {
  auto pods = select<DeletePod>(actions);
  const bool ends_job = has_any<DeleteJob>(actions);
  const BatchSize size{.count = pods.size(), .width_first = pods.size() + 1};
  const auto start = [this, ns = job.meta.ns, pods = std::move(pods)](std::size_t index,
                                                                      const Done& ended) {
    remove_pod({ns, pods[index].name}, pods[index], ended);
  };
  run(size, start, [this, job, ends_job, done = std::move(done)](ApplyOutcome outcome) {
    if (!outcome.complete || !ends_job) return done(std::move(outcome));
    remove_job(job, done);
  });
}

void Applier::remove_pod(const ObjectKey& key, const DeletePod& action, const Done& done) {
  json options = delete_options(action.uid);
  if (action.force) options["gracePeriodSeconds"] = 0;
  Request request{.verb = Verb::remove,
                  .resource = Resource::pods,
                  .ns = key.ns,
                  .name = key.name,
                  .body = options.dump()};
  api_.send(std::move(request), [this, key, action, done](Result<std::string> answer) {
    if (!answer) {
      if (answer.error().code != Code::not_found) return done(failure(answer.error()));
      // No watch will tell what is forgotten here: the job needs another look.
      view_.forget_pod(key, action.uid);
      return done(not_yet(key.name + " was gone already"));
    }
    // A graceful deletion answers with the pod, marked; an immediate one with its last state or a
    // Status. The mark is worth knowing: a pod that leaves is not deleted again.
    const auto object = parse_object(*answer);
    const bool is_marked = object && meta_from_json(*object).deletion_time.has_value();
    if (is_marked && !action.force) view_.wrote(Resource::pods, *answer);
    done({});
  });
}

/// The decision rests on the end and the time to live that the cache knows: the live job has the
/// last word, and it must not change until it is gone.
void Applier::remove_job(const TrainingJob& job, const Done& done) {
  Request request{.verb = Verb::get,
                  .resource = Resource::training_jobs,
                  .ns = job.meta.ns,
                  .name = job.meta.name};
  api_.send(std::move(request), [this, job, done](const Result<std::string>& answer) {
    if (!answer && answer.error().code == Code::not_found) return done({});
    if (!answer) return done(failure(answer.error()));
    const auto object = parse_object(*answer);
    const auto live =
        object ? job_from_json(*object) : Error{Code::internal, "not an object", "", {}};
    if (!live) return done(failure(live.error()));
    view_.wrote(Resource::training_jobs, *answer);
    // Nothing else would wake the job that has come in its place: the watch has no news of it now.
    if (live->meta.uid != job.meta.uid) return done(not_yet("another job of this name has come"));
    if (live->meta.deletion_time) return done({});
    const bool is_as_known = live->status.completion_time == job.status.completion_time &&
                             live->spec.run.ttl_after_finished == job.spec.run.ttl_after_finished;
    if (!is_as_known) return done(not_yet("the job has changed meanwhile"));
    json options = delete_options(job.meta.uid);
    options["preconditions"]["resourceVersion"] = live->meta.resource_version;
    options["propagationPolicy"] = "Background";
    Request removal{.verb = Verb::remove,
                    .resource = Resource::training_jobs,
                    .ns = job.meta.ns,
                    .name = job.meta.name,
                    .body = options.dump()};
    api_.send(std::move(removal), [done](const Result<std::string>& removed) {
      if (removed || removed.error().code == Code::not_found) return done({});
      done(failure(removed.error()));
    });
  });
}

}  // namespace tj
