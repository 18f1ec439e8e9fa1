#include "operator/local/object_store.h"

#include <algorithm>
#include <cstdio>

#include "operator/api/read.h"

namespace tj {

using Json = nlohmann::json;
using namespace object_rules;
using namespace read;

ObjectStore::ObjectStore(Clock now, ObjectStoreOptions options)
    : now_(std::move(now)), options_(std::move(options)) {}

const ObjectPtr* ObjectStore::find(Resource resource, const ObjectKey& key) const {
  const auto found = objects_.find({resource, key});
  return found == objects_.end() ? nullptr : &found->second;
}

Result<Json> ObjectStore::create(Resource resource, const std::string& ns, Json object) {
  if (!value_at(object, "metadata").is_object()) {
    return failure(Code::invalid, resource, {ns, ""}, "the object has no metadata");
  }
  Json& meta = object["metadata"];
  const std::string own_ns = string_at(meta, "namespace");
  if (!ns.empty() && !own_ns.empty() && own_ns != ns) {
    return failure(
        Code::invalid, resource, {ns, string_at(meta, "name")},
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  const std::uint64_t number = uids_given_ + 1;
  char digits[16];
  std::snprintf(digits, sizeof digits, "%012llx", static_cast<unsigned long long>(number));
  if (string_at(meta, "name").empty() && !string_at(meta, "generateName").empty()) {
    meta["name"] = string_at(meta, "generateName") + std::string(digits).substr(7);
  }
  ObjectKey key{!own_ns.empty() ? own_ns : (ns.empty() ? "default" : ns), string_at(meta, "name")};
  if (!has_namespace(resource)) key.ns.clear();
  if (const std::string why = why_invalid(resource, object, options_.validate_job); !why.empty()) {
    return invalid(resource, key, why);
  }
  if (find(resource, key) != nullptr) {
    return already_exists(resource, key);
  }
  uids_given_ = number;
  object["kind"] = kind_of(resource);
  object["apiVersion"] = api_version_of(resource);
  if (!key.ns.empty()) meta["namespace"] = key.ns;
  meta["uid"] = options_.uid_prefix + digits;
  meta["creationTimestamp"] = format_time(now_());
  for (const char* field :
       {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"}) {
    meta.erase(field);
  }
  if (has_generation(resource)) meta["generation"] = 1;
  if (has_own_status(resource)) object.erase("status");
  if (resource == Resource::pods) complete_pod(object);
  return commit(resource, nullptr, std::move(object));
}

Result<Json> ObjectStore::restore(Resource resource, Json object) {
  const ObjectKey key = key_of(object);
  if (find(resource, key) != nullptr) return already_exists(resource, key);
  const std::string uid = string_at(object.at("metadata"), "uid");
  // One that is counted here must not be given again.
  if (uid.starts_with(options_.uid_prefix)) {
    const auto number = std::stoull(uid.substr(options_.uid_prefix.size()), nullptr, 16);
    uids_given_ = std::max<std::uint64_t>(uids_given_, number);
  }
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
  if (const std::string why = why_invalid(resource, next, options_.validate_job); !why.empty())
    return invalid(resource, key, why);
  if (has_generation(resource) && object_at(next, "spec") != object_at(*old, "spec")) {
    meta["generation"] = number_at<long long>(old_meta, "generation") + 1;
  }
  return commit(resource, old, std::move(next));
}

Result<Json> ObjectStore::replace(Resource resource, Json object) {
  const ObjectKey key = key_of(object);
  const ObjectPtr* found = find(resource, key);
  if (found == nullptr) return not_found(resource, key);
  const ObjectPtr old = *found;
  if (needs_version(resource) && !object["metadata"].contains("resourceVersion")) {
    return invalid(resource, key,
                   "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update");
  }
  if (const auto stale = check_version(resource, object, *old)) return *stale;
  if (old->contains("status"))
    object["status"] = (*old)["status"];
  else
    object.erase("status");
  return store_update(resource, old, std::move(object));
}

Result<Json> ObjectStore::patch(Resource resource, const ObjectKey& key, const Json& patch) {
  const ObjectPtr* found = find(resource, key);
  if (found == nullptr) return not_found(resource, key);
  if (const auto stale = check_version(resource, patch, **found)) return *stale;
  Json next = **found;
  Json allowed = patch;
  allowed.erase("status");
  next.merge_patch(allowed);
  return store_update(resource, *found, std::move(next));
}

Result<Json> ObjectStore::patch_status(Resource resource, const ObjectKey& key, const Json& patch) {
  const ObjectPtr* found = find(resource, key);
  if (found == nullptr) return not_found(resource, key);
  if (const auto stale = check_version(resource, patch, **found)) return *stale;
  Json next = **found;
  if (patch.contains("status")) next.merge_patch(Json{{"status", patch["status"]}});
  return store_update(resource, *found, std::move(next));
}

Result<Json> ObjectStore::apply(Json manifest) {
  const std::string kind = string_at(manifest, "kind");
  for (const Resource resource : kResources) {
    if (kind != kind_of(resource) || string_at(manifest, "apiVersion") != api_version_of(resource))
      continue;
    ObjectKey key = key_of(manifest);
    if (key.ns.empty() && has_namespace(resource)) key.ns = "default";
    if (find(resource, key) == nullptr) return create(resource, key.ns, std::move(manifest));
    return patch(resource, key, manifest);
  }
  return Error{.code = Code::invalid,
               .message = "no matches for kind \"" + kind + "\" in version \"" +
                          string_at(manifest, "apiVersion") + "\"",
               .subject = string_at(object_at(manifest, "metadata"), "name"),
               .retry_after = {}};
}

Result<Json> ObjectStore::remove(Resource resource, const ObjectKey& key, const Json& options) {
  const ObjectPtr* found = find(resource, key);
  if (found == nullptr) return not_found(resource, key);
  const ObjectPtr old = *found;
  if (const auto wrong = check_preconditions(resource, *old, options)) return *wrong;
  if (resource == Resource::pods) {
    if (const long long grace = grace_seconds(*old, options); grace > 0)
      return mark_deleted(old, grace);
    // What was to end in time and must end now is written once more before it goes.
    if (old->at("metadata").contains("deletionTimestamp")) mark_deleted(old, 0).value();
  }
  erase(resource, ObjectPtr(*find(resource, key)));
  if (resource == Resource::pods || resource == Resource::services) return *old;
  return Json{{"kind", "Status"},
              {"apiVersion", "v1"},
              {"metadata", Json::object()},
              {"status", "Success"},
              {"details", {{"name", key.name}, {"uid", old->at("metadata").at("uid")}}}};
}

/// A second deletion may only shorten the grace period.
Result<Json> ObjectStore::mark_deleted(const ObjectPtr& pod, long long grace) {
  const Json& meta = pod->at("metadata");
  const bool marked = meta.contains("deletionTimestamp");
  if (marked && number_at<long long>(meta, "deletionGracePeriodSeconds") <= grace) return *pod;
  Json next = *pod;
  next["metadata"]["deletionTimestamp"] = format_time(now_() + std::chrono::seconds{grace});
  next["metadata"]["deletionGracePeriodSeconds"] = grace;
  if (!marked) next["metadata"]["generation"] = number_at<long long>(meta, "generation") + 1;
  return commit(Resource::pods, pod, std::move(next));
}

Result<Json> ObjectStore::bind_pod(const ObjectKey& key, const std::string& node) {
  const ObjectPtr* found = find(Resource::pods, key);
  if (found == nullptr) return not_found(Resource::pods, key);
  const ObjectPtr old = *found;
  const std::string bound = string_at(object_at(*old, "spec"), "nodeName");
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

ObjectList ObjectStore::objects(Resource resource, const std::string& ns,
                                const std::string& label_selector) const {
  return ObjectList(list_begin(resource, {ns, label_selector, ""}).value());
}

Result<std::vector<ObjectPtr>> ObjectStore::list_begin(Resource resource,
                                                       const Selection& selection) const {
  const std::string& ns = selection.ns;
  const auto labels = LabelSelector::parse(selection.label_selector);
  if (!labels) return labels.error();
  const auto fields = LabelSelector::parse(selection.field_selector);
  if (!fields) return fields.error();
  const auto known_fields = fields_of(resource, Json::object());
  for (const std::string& name : fields->keys()) {
    if (!known_fields.contains(name))
      return failure(Code::forbidden, resource, {ns, ""}, "field label not supported: " + name);
  }
  std::vector<ObjectPtr> found;
  for (auto entry = objects_.lower_bound({resource, {ns, ""}}); entry != objects_.end(); ++entry) {
    const auto& [key, object] = *entry;
    const bool in_scope = key.first == resource && (ns.empty() || key.second.ns == ns);
    if (!in_scope) break;
    if (!labels->matches(labels_of(*object))) continue;
    if (fields->matches(fields_of(resource, *object))) found.push_back(object);
  }
  return found;
}

Result<Json> ObjectStore::list(Resource resource, const Selection& selection,
                               const std::string& continue_token, int objects_max) {
  Snapshot snapshot{.version = version_, .rest = {}};
  if (continue_token.empty()) {
    auto found = list_begin(resource, selection);
    if (!found) return found.error();
    snapshot.rest = *std::move(found);
  } else {
    const auto begun = snapshots_.find(continue_token);
    if (begun == snapshots_.end()) {
      return failure(Code::gone, resource, {selection.ns, ""},
                     "The provided continue parameter is too old to display a consistent list "
                     "result. You can start a "
                     "new list without the continue parameter.");
    }
    snapshot = begun->second;  // kept: a page that got lost may be asked for again
  }
  const auto count =
      std::min({snapshot.rest.size(), static_cast<std::size_t>(options_.list_objects_max),
                static_cast<std::size_t>(objects_max)});
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
  for (const auto& [key, object] : objects_)
    uids[string_at(object_at(*object, "metadata"), "uid")] = true;
  std::vector<std::pair<Key, std::string>> orphans;
  for (const auto& [key, object] : objects_) {
    const Json& meta = object_at(*object, "metadata");
    const Json& owners = array_at(meta, "ownerReferences");
    if (owners.empty()) continue;
    const bool owned = std::any_of(owners.begin(), owners.end(), [&](const Json& owner) {
      return string_at(owner, "kind") != names::kKind || uids.contains(string_at(owner, "uid"));
    });
    if (!owned && !meta.contains("deletionTimestamp"))
      orphans.emplace_back(key, string_at(meta, "uid"));
  }
  for (const auto& [key, uid] : orphans) {
    const auto removed = remove(key.first, key.second, {{"preconditions", {{"uid", uid}}}});
    TJ_CHECK(removed.ok(), removed.ok() ? "" : describe(removed.error()));
  }
  return static_cast<int>(orphans.size());
}

}  // namespace tj
