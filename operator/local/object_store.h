// The state of an API server in memory: objects as JSON with the rules that a real one keeps
// (resourceVersions, uids, generations, conflicts, graceful deletion of pods, owner garbage
// collection, a bounded history). Synchronous and deterministic; MemoryApi (memory_api.h) puts the
// asynchronous seam, watches and faults around it. Not modelled: finalizers, foreground deletion,
// server-side apply.
#pragma once
#include <boost/iterator/indirect_iterator.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "contract/result.h"
#include "operator/api/types.h"
#include "operator/kube/kube_api.h"
#include "operator/local/object_rules.h"

namespace tj {

using ObjectPtr = std::shared_ptr<const nlohmann::json>;

/// Objects as they were when it was made; nothing is copied.
class ObjectList {
 public:
  explicit ObjectList(std::vector<ObjectPtr> objects) : objects_(std::move(objects)) {}
  auto begin() const { return boost::make_indirect_iterator(objects_.begin()); }
  auto end() const { return boost::make_indirect_iterator(objects_.end()); }
  const nlohmann::json& operator[](std::size_t index) const { return *objects_.at(index); }
  std::size_t size() const { return objects_.size(); }
  bool empty() const { return objects_.empty(); }

 private:
  std::vector<ObjectPtr> objects_;
};

enum class ChangeType { added, modified, deleted };

/// One step of the history. `object` is the new state; of a deletion the last state, at the
/// deletion's version.
struct ObjectChange {
  std::uint64_t version = 0;
  Resource resource = Resource::pods;
  ChangeType type = ChangeType::added;
  ObjectPtr object;
  ObjectPtr previous;  // null when added
};

struct ObjectStoreOptions {
  int list_objects_max = kListPageMax;  // of one page
  std::size_t history_changes_max =
      4096;  // a watch or a continue token older than that is answered 410
  std::string uid_prefix = "00000000-0000-4000-8000-";  // 24 characters; 12 counted digits follow
  /// The schema's work: what is wrong with a TrainingJob at create and replace, empty if nothing.
  /// May be null.
  std::function<std::string(const nlohmann::json& job)> validate_job;
};

/// Which objects of a resource.
struct Selection {
  std::string ns;  // empty: all
  std::string label_selector;
  std::string field_selector;
};

class ObjectStore {
 public:
  using Json = nlohmann::json;
  using Clock = std::function<TimePoint()>;
  using Listener = std::function<void(const ObjectChange&)>;

  ObjectStore(Clock now, ObjectStoreOptions options);

  /// Called inside each change, after it is stored. One listener: the API around this store.
  void set_listener(Listener listener) { listener_ = std::move(listener); }

  /// POST. An empty `ns` takes the object's own, else "default"; nodes have none.
  /// `metadata.generateName` is served.
  Result<Json> create(Resource resource, const std::string& ns, Json object);
  /// Puts back an object as it was when it was saved, with its uid, generation and status.
  Result<Json> restore(Resource resource, Json object);
  Result<Json> get(Resource resource, const ObjectKey& key) const;
  /// PUT: metadata and spec; the status stays as it is. A stale metadata.resourceVersion is a
  /// conflict. Not modelled: a Lease that is not there is created by a real server.
  Result<Json> replace(Resource resource, Json object);
  /// `kubectl apply`: create, or a merge patch of labels, annotations and spec. The kind names the
  /// resource.
  Result<Json> apply(Json manifest);
  /// PATCH (merge) of the status subresource: metadata and spec stay. metadata.resourceVersion
  /// guards it.
  Result<Json> patch_status(Resource resource, const ObjectKey& key, const Json& patch);
  /// PATCH (merge) of all but the status.
  Result<Json> patch(Resource resource, const ObjectKey& key, const Json& patch);
  /// DELETE with DeleteOptions (gracePeriodSeconds, preconditions.{uid,resourceVersion}). A pod
  /// that runs is only marked; one that was never bound to a node, or has ended, goes at once.
  Result<Json> remove(Resource resource, const ObjectKey& key,
                      const Json& options = Json::object());

  /// The scheduler's part: spec.nodeName and the PodScheduled condition.
  Result<Json> bind_pod(const ObjectKey& key, const std::string& node);
  /// The kubelet's part: the pod's processes have ended, the object goes. Only the pod of that uid.
  Result<Json> finish_delete(const ObjectKey& key, const std::string& uid);

  /// All objects, in order of namespace and name; an empty `ns` means all. Aborts on a selector it
  /// can't read.
  ObjectList objects(Resource resource, const std::string& ns = "",
                     const std::string& label_selector = "") const;
  /// GET of a collection: one page, consistent with the first page of its continue token.
  Result<Json> list(Resource resource, const Selection& selection,
                    const std::string& continue_token, int objects_max = kListPageMax);

  std::uint64_t version() const { return version_; }
  /// Changes up to and including this version are forgotten.
  std::uint64_t compacted_version() const { return compacted_version_; }
  const std::deque<ObjectChange>& history() const { return history_; }
  /// Forgets the whole history: older versions and continue tokens are answered 410 from now on.
  void compact();

  /// Removes the objects whose owners of our kinds are all gone; returns how many deletions it
  /// began.
  int collect_garbage();

 private:
  using Key = std::pair<Resource, ObjectKey>;
  struct Snapshot {  // the rest of a list that was begun
    std::uint64_t version = 0;
    std::vector<ObjectPtr> rest;
  };

  const ObjectPtr* find(Resource resource, const ObjectKey& key) const;
  Json commit(Resource resource, ObjectPtr previous, Json object);
  void erase(Resource resource, const ObjectPtr& object);
  void record(ObjectChange change);
  void forget_before(std::uint64_t version);
  Result<Json> store_update(Resource resource, const ObjectPtr& old, Json next);
  Result<Json> mark_deleted(const ObjectPtr& pod, long long grace);
  Result<std::vector<ObjectPtr>> list_begin(Resource resource, const Selection& selection) const;

  Clock now_;
  ObjectStoreOptions options_;
  Listener listener_;
  std::map<Key, ObjectPtr> objects_;
  std::deque<ObjectChange> history_;
  std::map<std::string, Snapshot> snapshots_;  // by continue token
  std::uint64_t version_ = 1;
  std::uint64_t compacted_version_ = 1;
  std::uint64_t uids_given_ = 0;
  std::uint64_t tokens_given_ = 0;
};

}  // namespace tj
