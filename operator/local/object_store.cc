#include "operator/local/object_store.h"

#include <algorithm>
#include <cstdio>

namespace tj {
namespace {

using Json = nlohmann::json;

Error failure(Code code, Resource resource, const ObjectKey& key, std::string message) {
  return Error{.code = code,
               .message = std::move(message),
               .subject = qualified_name(resource) + " " + to_string(key),
               .retry_after = {}};
}

std::string quoted(Resource resource, const std::string& name) {
  return qualified_name(resource) + " \"" + name + "\"";
}

Error not_found(Resource resource, const ObjectKey& key) {
  return failure(Code::not_found, resource, key, quoted(resource, key.name) + " not found");
}

Error conflict(Resource resource, const ObjectKey& key, const std::string& why) {
  return failure(Code::conflict, resource, key,
                 "Operation cannot be fulfilled on " + quoted(resource, key.name) + ": " + why);
}

Error invalid(Resource resource, const ObjectKey& key, const std::string& why) {
  const std::string group = resource == Resource::training_jobs ? ".kubebrain.io" : "";
  return failure(
      Code::invalid, resource, key,
      std::string(kind_of(resource)) + group + " \"" + key.name + "\" is invalid: " + why);
}

std::string text_at(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& part(const Json& object, const char* field) {
  static const Json kNothing = Json::object();
  const auto found = object.find(field);
  return found != object.end() && found->is_object() ? *found : kNothing;
}

bool has_generation(Resource resource) {
  return resource == Resource::training_jobs || resource == Resource::pods;
}

/// RFC 1123 subdomain, the rule for names of all our resources.
bool is_name(const std::string& name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto inner = [&](char c) { return plain(c) || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= 253 && plain(name.front()) && plain(name.back()) &&
         std::all_of(name.begin(), name.end(), inner);
}

void complete_pod(Json& pod) {
  Json& spec = pod["spec"];
  if (!spec.contains("terminationGracePeriodSeconds")) spec["terminationGracePeriodSeconds"] = 30;
  if (!spec.contains("restartPolicy")) spec["restartPolicy"] = "Always";
  pod["status"] = {{"phase", "Pending"}, {"qosClass", "BestEffort"}};
}

std::string why_invalid(Resource resource, const Json& object, const ObjectStoreOptions& options) {
  const std::string name = text_at(part(object, "metadata"), "name");
  if (!is_name(name)) {
    return "metadata.name: Invalid value: \"" + name +
           "\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
           "'-' or '.', and "
           "must start and end with an alphanumeric character";
  }
  if (resource == Resource::pods) {
    const auto& spec = part(object, "spec");
    const auto containers = spec.find("containers");
    if (containers == spec.end() || !containers->is_array() || containers->empty()) {
      return "spec.containers: Required value";
    }
  }
  if (resource == Resource::training_jobs && options.validate_job)
    return options.validate_job(object);
  return "";
}

/// The guard of a write: absent or equal, else a conflict.
bool is_stale(const Json& patch_or_object, const Json& stored) {
  const std::string wanted = text_at(part(patch_or_object, "metadata"), "resourceVersion");
  return !wanted.empty() && wanted != text_at(part(stored, "metadata"), "resourceVersion");
}

constexpr const char* kModified =
    "the object has been modified; please apply your changes to the latest version and try again";

std::optional<Error> check_preconditions(Resource resource, const ObjectKey& key,
                                         const Json& stored, const Json& options) {
  const Json& wanted = part(options, "preconditions");
  const Json& meta = part(stored, "metadata");
  for (const auto& [field, word] :
       {std::pair{"uid", "UID"}, std::pair{"resourceVersion", "ResourceVersion"}}) {
    const std::string expected = text_at(wanted, field);
    const std::string actual = text_at(meta, field);
    if (expected.empty() || expected == actual) continue;
    return conflict(resource, key,
                    std::string("Precondition failed: ") + word + " in precondition: " + expected +
                        ", " + word + " in object meta: " + actual);
  }
  return std::nullopt;
}

}  // namespace

const char* kind_of(Resource resource) {
  switch (resource) {
    case Resource::training_jobs: return names::kKind;
    case Resource::pods: return "Pod";
    case Resource::services: return "Service";
    case Resource::events: return "Event";
  }
  return "";
}

const char* api_version_of(Resource resource) {
  return resource == Resource::training_jobs ? names::kApiVersion : "v1";
}

std::string qualified_name(Resource resource) {
  switch (resource) {
    case Resource::training_jobs: return std::string(names::kPlural) + "." + names::kApiGroup;
    case Resource::pods: return "pods";
    case Resource::services: return "services";
    case Resource::events: return "events";
  }
  return "";
}

LabelSelector::Labels labels_of(const Json& object) {
  LabelSelector::Labels labels;
  for (const auto& [key, value] : part(part(object, "metadata"), "labels").items()) {
    if (value.is_string()) labels[key] = value.get<std::string>();
  }
  return labels;
}

ObjectKey key_of(const Json& object) {
  const Json& meta = part(object, "metadata");
  return {text_at(meta, "namespace"), text_at(meta, "name")};
}

ObjectStore::ObjectStore(Clock now, ObjectStoreOptions options)
    : now_(std::move(now)), options_(std::move(options)) {}

const ObjectPtr* ObjectStore::find(Resource resource, const ObjectKey& key) const {
  const auto found = objects_.find({resource, key});
  return found == objects_.end() ? nullptr : &found->second;
}

Result<Json> ObjectStore::create(Resource resource, const std::string& ns, Json object) {
  if (!object.is_object() || !object.contains("metadata") || !object["metadata"].is_object()) {
    return failure(Code::invalid, resource, {ns, ""}, "the object has no metadata");
  }
  Json& meta = object["metadata"];
  const std::string own_ns = text_at(meta, "namespace");
  if (!ns.empty() && !own_ns.empty() && own_ns != ns) {
    return failure(
        Code::invalid, resource, {ns, text_at(meta, "name")},
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  const std::uint64_t number = uids_given_ + 1;
  char digits[16];
  std::snprintf(digits, sizeof digits, "%012llx", static_cast<unsigned long long>(number));
  if (text_at(meta, "name").empty() && !text_at(meta, "generateName").empty()) {
    meta["name"] = text_at(meta, "generateName") + std::string(digits).substr(7);
  }
  const ObjectKey key{!own_ns.empty() ? own_ns : (ns.empty() ? "default" : ns),
                      text_at(meta, "name")};
  if (const std::string why = why_invalid(resource, object, options_); !why.empty()) {
    return invalid(resource, key, why);
  }
  if (find(resource, key) != nullptr) {
    return failure(Code::conflict, resource, key, quoted(resource, key.name) + " already exists");
  }
  uids_given_ = number;
  object["kind"] = kind_of(resource);
  object["apiVersion"] = api_version_of(resource);
  meta["namespace"] = key.ns;
  meta["uid"] = options_.uid_prefix + digits;
  meta["creationTimestamp"] = format_time(now_());
  for (const char* field :
       {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"}) {
    meta.erase(field);
  }
  if (has_generation(resource)) meta["generation"] = 1;
  object.erase("status");
  if (resource == Resource::pods) complete_pod(object);
  return commit(resource, nullptr, std::move(object));
}

Result<Json> ObjectStore::get(Resource resource, const ObjectKey& key) const {
  const ObjectPtr* found = find(resource, key);
  if (found == nullptr) return not_found(resource, key);
  return **found;
}

/// Identity and bookkeeping come from `old`, whatever `next` says; a change of the spec counts as a
/// generation.
Result<Json> ObjectStore::store_update(Resource resource, const ObjectPtr& old, Json next) {
  const ObjectKey key = key_of(*old);
  const Json& old_meta = old->at("metadata");
  Json& meta = next["metadata"];
  for (const char* field : {"name", "namespace", "uid", "creationTimestamp", "resourceVersion",
                            "generation", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    if (old_meta.contains(field))
      meta[field] = old_meta[field];
    else
      meta.erase(field);
  }
  next["kind"] = old->at("kind");
  next["apiVersion"] = old->at("apiVersion");
  if (next == *old) return next;  // a write that changes nothing is no event and no version
  if (const std::string why = why_invalid(resource, next, options_); !why.empty())
    return invalid(resource, key, why);
  if (has_generation(resource) && part(next, "spec") != part(*old, "spec")) {
    meta["generation"] = old_meta.value("generation", 0LL) + 1;
  }
  return commit(resource, old, std::move(next));
}

Result<Json> ObjectStore::replace(Resource resource, Json object) {
  const ObjectKey key = key_of(object);
  const ObjectPtr* found = find(resource, key);
  if (found == nullptr) return not_found(resource, key);
  const ObjectPtr old = *found;
  if (is_stale(object, *old)) return conflict(resource, key, kModified);
  if (old->contains("status"))
    object["status"] = (*old)["status"];
  else
    object.erase("status");
  return store_update(resource, old, std::move(object));
}

Result<Json> ObjectStore::patch(Resource resource, const ObjectKey& key, const Json& patch) {
  const ObjectPtr* found = find(resource, key);
  if (found == nullptr) return not_found(resource, key);
  if (is_stale(patch, **found)) return conflict(resource, key, kModified);
  Json next = **found;
  Json allowed = patch;
  allowed.erase("status");
  next.merge_patch(allowed);
  return store_update(resource, *found, std::move(next));
}

Result<Json> ObjectStore::patch_status(Resource resource, const ObjectKey& key, const Json& patch) {
  const ObjectPtr* found = find(resource, key);
  if (found == nullptr) return not_found(resource, key);
  if (is_stale(patch, **found)) return conflict(resource, key, kModified);
  Json next = **found;
  if (patch.contains("status")) next.merge_patch(Json{{"status", patch["status"]}});
  return store_update(resource, *found, std::move(next));
}

Result<Json> ObjectStore::apply(Json manifest) {
  const std::string kind = text_at(manifest, "kind");
  for (const Resource resource :
       {Resource::training_jobs, Resource::pods, Resource::services, Resource::events}) {
    if (kind != kind_of(resource) || text_at(manifest, "apiVersion") != api_version_of(resource))
      continue;
    ObjectKey key = key_of(manifest);
    if (key.ns.empty()) key.ns = "default";
    if (find(resource, key) == nullptr) return create(resource, key.ns, std::move(manifest));
    return patch(resource, key, manifest);
  }
  return Error{.code = Code::invalid,
               .message = "no matches for kind \"" + kind + "\" in version \"" +
                          text_at(manifest, "apiVersion") + "\"",
               .subject = text_at(part(manifest, "metadata"), "name"),
               .retry_after = {}};
}

Result<Json> ObjectStore::remove(Resource resource, const ObjectKey& key, const Json& options) {
  const ObjectPtr* found = find(resource, key);
  if (found == nullptr) return not_found(resource, key);
  const ObjectPtr old = *found;
  if (const auto wrong = check_preconditions(resource, key, *old, options)) return *wrong;
  if (resource == Resource::pods) {
    // podStrategy.CheckGracefulDelete (kubernetes pkg/registry/core/pod/strategy.go) decides the
    // same way.
    const Json& spec = part(*old, "spec");
    const std::string phase = text_at(part(*old, "status"), "phase");
    long long grace_seconds = spec.value("terminationGracePeriodSeconds", 30LL);
    if (options.contains("gracePeriodSeconds"))
      grace_seconds = options["gracePeriodSeconds"].get<long long>();
    if (grace_seconds < 0) grace_seconds = 1;
    const bool ended = phase == "Succeeded" || phase == "Failed";
    if (grace_seconds > 0 && !ended && !text_at(spec, "nodeName").empty())
      return mark_deleted(old, grace_seconds);
  }
  erase(resource, old);
  if (resource == Resource::pods || resource == Resource::services) return *old;
  return Json{{"kind", "Status"},
              {"apiVersion", "v1"},
              {"metadata", Json::object()},
              {"status", "Success"},
              {"details", {{"name", key.name}, {"uid", old->at("metadata").at("uid")}}}};
}

/// A second deletion may only shorten the grace period.
Result<Json> ObjectStore::mark_deleted(const ObjectPtr& pod, long long grace_seconds) {
  const Json& meta = pod->at("metadata");
  const bool marked = meta.contains("deletionTimestamp");
  if (marked && meta.value("deletionGracePeriodSeconds", 0LL) <= grace_seconds) return *pod;
  Json next = *pod;
  next["metadata"]["deletionTimestamp"] = format_time(now_() + std::chrono::seconds{grace_seconds});
  next["metadata"]["deletionGracePeriodSeconds"] = grace_seconds;
  if (!marked) next["metadata"]["generation"] = meta.value("generation", 0LL) + 1;
  return commit(Resource::pods, pod, std::move(next));
}

Result<Json> ObjectStore::bind_pod(const ObjectKey& key, const std::string& node) {
  const ObjectPtr* found = find(Resource::pods, key);
  if (found == nullptr) return not_found(Resource::pods, key);
  const ObjectPtr old = *found;
  const std::string bound = text_at(part(*old, "spec"), "nodeName");
  if (!bound.empty()) {
    return conflict(Resource::pods, key,
                    "pod " + key.name + " is already assigned to node \"" + bound + "\"");
  }
  Json next = *old;
  next["spec"]["nodeName"] = node;
  next["status"]["conditions"] = Json::array({{{"type", "PodScheduled"},
                                               {"status", "True"},
                                               {"lastTransitionTime", format_time(now_())}}});
  return commit(Resource::pods, old, std::move(next));
}

Result<Json> ObjectStore::finish_delete(const ObjectKey& key, const std::string& uid) {
  return remove(Resource::pods, key,
                {{"gracePeriodSeconds", 0}, {"preconditions", {{"uid", uid}}}});
}

Json ObjectStore::commit(Resource resource, ObjectPtr previous, Json object) {
  ++version_;
  object["metadata"]["resourceVersion"] = std::to_string(version_);
  const auto stored = std::make_shared<const Json>(std::move(object));
  objects_[{resource, key_of(*stored)}] = stored;
  const ChangeType type = previous ? ChangeType::modified : ChangeType::added;
  record({version_, resource, type, stored, std::move(previous)});
  return *stored;
}

void ObjectStore::erase(Resource resource, const ObjectPtr& object) {
  ++version_;
  Json last = *object;
  last["metadata"]["resourceVersion"] = std::to_string(version_);
  objects_.erase({resource, key_of(last)});
  record({version_, resource, ChangeType::deleted, std::make_shared<const Json>(std::move(last)),
          object});
}

void ObjectStore::record(ObjectChange change) {
  history_.push_back(change);
  if (history_.size() > options_.history_changes_max) forget_before(history_[1].version);
  if (listener_) listener_(change);
}

void ObjectStore::compact() { forget_before(version_ + 1); }

void ObjectStore::forget_before(std::uint64_t version) {
  compacted_version_ = version - 1;
  while (!history_.empty() && history_.front().version < version) history_.pop_front();
  std::erase_if(snapshots_,
                [&](const auto& entry) { return entry.second.version < compacted_version_; });
}

std::vector<Json> ObjectStore::objects(Resource resource, const std::string& ns,
                                       const std::string& label_selector) const {
  const auto found = list_begin(resource, ns, label_selector);
  std::vector<Json> result;
  for (const ObjectPtr& object : found.value()) result.push_back(*object);
  return result;
}

Result<std::vector<ObjectPtr>> ObjectStore::list_begin(Resource resource, const std::string& ns,
                                                       const std::string& label_selector) const {
  const auto selector = LabelSelector::parse(label_selector);
  if (!selector) return selector.error();
  std::vector<ObjectPtr> found;
  for (const auto& [key, object] : objects_) {
    const bool in_scope = key.first == resource && (ns.empty() || key.second.ns == ns);
    if (in_scope && selector->matches(labels_of(*object))) found.push_back(object);
  }
  return found;
}

Result<Json> ObjectStore::list(Resource resource, const std::string& ns,
                               const std::string& label_selector,
                               const std::string& continue_token) {
  Snapshot snapshot{.version = version_, .rest = {}};
  if (continue_token.empty()) {
    auto found = list_begin(resource, ns, label_selector);
    if (!found) return found.error();
    snapshot.rest = *std::move(found);
  } else {
    const auto begun = snapshots_.find(continue_token);
    if (begun == snapshots_.end()) {
      return failure(Code::gone, resource, {ns, ""},
                     "The provided continue parameter is too old to display a consistent list "
                     "result. You can start a "
                     "new list without the continue parameter.");
    }
    snapshot = begun->second;  // kept: a page that got lost may be asked for again
  }
  const auto count =
      std::min(snapshot.rest.size(), static_cast<std::size_t>(options_.list_objects_max));
  Json items = Json::array();
  for (std::size_t i = 0; i < count; ++i) items.push_back(*snapshot.rest[i]);
  Json meta = {{"resourceVersion", std::to_string(snapshot.version)}};
  if (count < snapshot.rest.size()) {
    meta["remainingItemCount"] = snapshot.rest.size() - count;
    const std::string token =
        std::to_string(snapshot.version) + "." + std::to_string(++tokens_given_);
    meta["continue"] = token;
    snapshot.rest.erase(snapshot.rest.begin(),
                        snapshot.rest.begin() + static_cast<std::ptrdiff_t>(count));
    snapshots_[token] = std::move(snapshot);
  }
  return Json{{"kind", std::string(kind_of(resource)) + "List"},
              {"apiVersion", api_version_of(resource)},
              {"metadata", std::move(meta)},
              {"items", std::move(items)}};
}

int ObjectStore::collect_garbage() {
  std::map<std::string, bool> uids;
  for (const auto& [key, object] : objects_) uids[text_at(part(*object, "metadata"), "uid")] = true;
  std::vector<std::pair<Key, std::string>> orphans;
  for (const auto& [key, object] : objects_) {
    const Json& meta = part(*object, "metadata");
    const auto owners = meta.find("ownerReferences");
    if (owners == meta.end() || !owners->is_array() || owners->empty()) continue;
    const bool owned = std::any_of(owners->begin(), owners->end(), [&](const Json& owner) {
      return text_at(owner, "kind") != names::kKind || uids.contains(text_at(owner, "uid"));
    });
    if (!owned && !meta.contains("deletionTimestamp"))
      orphans.emplace_back(key, text_at(meta, "uid"));
  }
  for (const auto& [key, uid] : orphans) {
    const auto removed = remove(key.first, key.second, {{"preconditions", {{"uid", uid}}}});
    TJ_CHECK(removed.ok(), removed.ok() ? "" : describe(removed.error()));
  }
  return static_cast<int>(orphans.size());
}

}  // namespace tj
