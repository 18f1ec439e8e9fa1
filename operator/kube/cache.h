// The operator's view of one kind of object: trimmed, keyed by namespace/name, fed by a Watcher and
// by our own writes. It reads its own writes: an answer newer than the stream is kept until the
// stream has passed it (KEP-5504 makes resourceVersions of one kind comparable), so that "missing"
// is never decided from a stale cache.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "operator/api/types.h"

namespace tj {

/// 0 when the text is not a number: then nothing is known about its order.
inline std::uint64_t version_number(const std::string& resource_version) {
  std::uint64_t number = 0;
  const char* const end = resource_version.data() + resource_version.size();
  const auto read = std::from_chars(resource_version.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end) return 0;
  return number;
}

/// Where a cached object says who it is. An overload serves a type that keeps it in another form.
template <typename T>
const ObjectMeta& meta_of(const T& object) {
  return object.meta;
}

/// T has a `meta_of`. Not thread-safe: it lives on the loop thread.
template <typename T>
class Cache {
 public:
  const std::map<ObjectKey, T>& objects() const { return objects_; }
  const T* find(const ObjectKey& key) const {
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : &found->second;
  }

  /// A list is read from here on. Nothing changes before it is complete.
  void begin_list() { listed_.clear(); }
  void add_listed(T object) {
    ObjectKey key = meta_of(object).key();
    listed_.insert_or_assign(std::move(key), std::move(object));
  }
  /// The list, taken at `list_version`, is complete. Returns every object that changed, in its old
  /// and its new form. Our own writes since the list was taken stay. But a list from before what
  /// was seen already is of another history (an etcd was restored): all that was known is void.
  std::vector<T> end_list(const std::string& list_version) {
    const std::uint64_t listed_at = version_number(list_version);
    const bool is_other_history = listed_at != 0 && listed_at < seen_version_;
    seen_version_ = listed_at;
    std::map<ObjectKey, T> next = std::exchange(listed_, {});
    std::vector<T> changed;
    for (auto& [key, old] : objects_) {
      const auto now = next.find(key);
      const bool written_after_list =
          !is_other_history && version_number(meta_of(old).resource_version) > listed_at;
      if (now == next.end() && written_after_list)
        next.emplace(key, old);
      else if (now != next.end() && written_after_list)
        now->second = old;
      else if (now == next.end() || !(now->second == old))
        changed.push_back(old);
    }
    for (const auto& [key, object] : next) {
      const T* old = find(key);
      if (old == nullptr || !(*old == object)) changed.push_back(object);
    }
    objects_ = std::move(next);
    return changed;
  }

  /// An object from the stream. Returns false when it is not newer than what is known.
  bool upsert(T object) {
    seen_version_ = std::max(seen_version_, version_number(meta_of(object).resource_version));
    return put(std::move(object));
  }
  /// A deletion from the stream; `object` is its last state. Another object of the same name is
  /// left alone.
  bool erase(const T& object) {
    seen_version_ = std::max(seen_version_, version_number(meta_of(object).resource_version));
    const auto found = objects_.find(meta_of(object).key());
    if (found == objects_.end() || meta_of(found->second).uid != meta_of(object).uid) return false;
    objects_.erase(found);
    return true;
  }
  /// An object from the answer to our own write. If the stream has passed it, the stream knows
  /// better; if its version has no order, it might be an old one, and the stream will bring it.
  bool wrote(T object) {
    if (version_number(meta_of(object).resource_version) <= seen_version_) return false;
    return put(std::move(object));
  }

 private:
  bool put(T object) {
    const ObjectKey key = meta_of(object).key();
    const auto found = objects_.find(key);
    if (found == objects_.end()) {
      objects_.emplace(key, std::move(object));
      return true;
    }
    const std::uint64_t known = version_number(meta_of(found->second).resource_version);
    const std::uint64_t offered = version_number(meta_of(object).resource_version);
    // Of versions that have no order, the one that came last wins.
    if (known != 0 && offered != 0 && offered <= known) return false;
    found->second = std::move(object);
    return true;
  }

  std::map<ObjectKey, T> objects_;
  std::map<ObjectKey, T> listed_;   // so far, by a list that is not complete
  std::uint64_t seen_version_ = 0;  // the newest that the stream or a list has shown
};

}  // namespace tj
