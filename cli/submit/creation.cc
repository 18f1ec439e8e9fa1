#include "cli/submit/creation.h"

#include <utility>

#include "cli/plain_text.h"
#include "cli/submit/output.h"
#include "contract/names.h"
#include "operator/api/json.h"
#include "operator/api/read.h"

namespace tj::submit {
namespace {

using Json = nlohmann::json;

constexpr const char* kMayBeThere =
    "; it is not known whether the server did it all the same: see `kubectl get tj ";

std::string delete_options(const std::string& uid) {
  Json options = {
      {"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"propagationPolicy", "Background"}};
  if (!uid.empty()) options["preconditions"] = {{"uid", uid}};
  return options.dump();
}

Request removal(Resource resource, const ObjectKey& key, const std::string& uid) {
  return {.verb = Verb::remove,
          .resource = resource,
          .ns = key.ns,
          .name = key.name,
          .body = delete_options(uid)};
}

std::string title(const ObjectKey& key) { return "job " + to_string(key); }

Error failed(const ObjectKey& key, const std::string& doing, const Error& cause) {
  return Error{cause.code, doing + ": " + by_field(describe(cause)), title(key), cause.retry_after};
}

bool may_have_happened(Code code) { return code == Code::timeout || code == Code::unavailable; }

Json owner_of(const Json& job) {
  const ObjectMeta meta = meta_from_json(job);
  return {{"apiVersion", names::kApiVersion},
          {"kind", names::kKind},
          {"name", meta.name},
          {"uid", meta.uid}};
}

class Creation {
 public:
  Creation(Session& session, const MadeJob& made) : session_(session), made_(made) {
    key_ = meta_from_json(made.job).key();
    if (key_.ns.empty()) key_.ns = session.ns();
  }

  Result<Json> run(const CreateOptions& options) {
    if (options.replaces) {
      const auto removed = session_.call(removal(Resource::training_jobs, key_, ""));
      if (!removed && removed.error().code != Code::not_found)
        return failed(key_, "the job of that name can't be deleted", removed.error());
      was_replaced_ = removed.ok();
    }
    auto job = create_object(Resource::training_jobs, made_.job);
    if (!job) return job_error(job.error());
    if (!made_.config_map) return job;
    if (const auto added = add_config_map(*job); !added) return undo(*job, added.error());
    return job;
  }

 private:
  Result<Json> create_object(Resource resource, const Json& object) {
    return session_.call(
        {.verb = Verb::create, .resource = resource, .ns = key_.ns, .body = object.dump()});
  }

  Error job_error(const Error& cause) const {
    Error error = failed(key_, "is not created", cause);
    if (cause.code == Code::conflict)
      error.message =
          "there is one of that name already; take another name, or --replace, which "
          "deletes that one first";
    if (may_have_happened(cause.code)) {
      error.message += kMayBeThere + key_.name + " -n " + key_.ns + "`";
      if (made_.config_map)
        error.message += "; its workers would wait for their script: delete it, and submit again";
    }
    if (was_replaced_) error.message += " (the earlier job of that name is deleted)";
    return error;
  }

  Result<void> add_config_map(const Json& job) {
    Json config_map = *made_.config_map;
    config_map["metadata"]["ownerReferences"] = Json::array({owner_of(job)});
    auto added = create_object(Resource::config_maps, config_map);
    if (!added && added.error().code == Code::conflict) {
      if (const auto removed = remove_left_over(config_map); !removed) return removed.error();
      added = create_object(Resource::config_maps, config_map);
    }
    if (!added) return added.error();
    return {};
  }

  /// One of the same name belongs to an earlier job of this name, with the same script, and is
  /// about to be collected. To delete it and make another is safe against that collection, which
  /// names the uid; to take it over is not.
  Result<void> remove_left_over(const Json& config_map) {
    const ObjectKey key{key_.ns, meta_from_json(config_map).name};
    const auto found = session_.call(
        {.verb = Verb::get, .resource = Resource::config_maps, .ns = key.ns, .name = key.name});
    if (!found && found.error().code == Code::not_found) return {};
    if (!found) return found.error();
    const Json& meta = read::object_at(*found, "metadata");
    for (const Json& owner : read::array_at(meta, "ownerReferences")) {
      const bool is_ours = read::string_at(owner, "kind") == names::kKind &&
                           read::string_at(owner, "name") == key_.name;
      if (!is_ours) continue;
      const auto removed =
          session_.call(removal(Resource::config_maps, key, read::string_at(meta, "uid")));
      if (!removed && removed.error().code != Code::not_found) return removed.error();
      return {};
    }
    return Error{Code::conflict,
                 "there is one of that name already, and it is not of this job; delete it, or take "
                 "another name for the job",
                 "configmap " + to_string(key),
                 {}};
  }

  /// The ConfigMap, if the server made it all the same, goes with its owner.
  Error undo(const Json& job, const Error& cause) {
    Error error = failed(key_, "its script does not get into a ConfigMap", cause);
    const auto removed = remove_job(session_, key_, meta_from_json(job).uid);
    if (removed) {
      error.message += "\nthe job is deleted again";
    } else {
      error.message += "\nthe job is there without its script, and its workers wait for it: " +
                       plain_line(describe(removed.error())) +
                       "; delete it by `kubectl delete tj " + key_.name + " -n " + key_.ns + "`";
    }
    return error;
  }

  Session& session_;
  const MadeJob& made_;
  ObjectKey key_;
  bool was_replaced_ = false;
};

}  // namespace

Result<Json> create(Session& session, const MadeJob& made, const CreateOptions& options) {
  return Creation(session, made).run(options);
}

Result<void> remove_job(Session& session, const ObjectKey& key, const std::string& uid) {
  const auto removed = session.call(removal(Resource::training_jobs, key, uid));
  if (removed || removed.error().code == Code::not_found) return {};
  return removed.error();
}

}  // namespace tj::submit
