#include "operator/loop/view.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "operator/api/json.h"
#include "operator/api/read.h"
#include "operator/loop/log_text.h"
#include "operator/plan/plan.h"

namespace tj {
namespace {
using nlohmann::json;

/// What can't be read is one bad object, and no reason to leave out the others.
template <typename T, typename FromJson>
std::optional<T> read_as(const FromJson& from_json, const json& value) {
  try {
    Result<T> object = from_json(value);
    if (object) return *std::move(object);
    spdlog::warn("msg=\"object left out\" error={}", log_value(describe(object.error())));
  } catch (const std::exception& bug) {
    spdlog::error("msg=\"object left out\" bug={}", log_value(bug.what()));
  }
  return std::nullopt;
}

Result<PackedPod> trim_and_pack(const json& object) {
  const auto pod = trim_pod(object);
  if (!pod) return pod.error();
  return PackedPod(*pod);
}

bool is_cached(Resource resource) {
  return resource == Resource::training_jobs || resource == Resource::pods ||
         resource == Resource::services;
}

ObjectKey job_of(const TrainingJob& job) { return job.meta.key(); }
ObjectKey job_of(const Pod& pod) { return {pod.meta.ns, pod.job_name}; }
ObjectKey job_of(const Service& service) { return {service.meta.ns, service.job_name}; }

/// Applies a delta to one cache; returns every object that changed, in its old and its new form.
template <typename T, typename FromJson>
std::vector<T> feed(Cache<T>& cache, const FromJson& from_json, const WatchDelta& delta) {
  if (const auto* list = std::get_if<Replace>(&delta)) {
    if (!list->continues) cache.begin_list();
    for (const std::string& text : list->objects) {
      if (auto object = read_as<T>(from_json, read::parse(text)))
        cache.add_listed(*std::move(object));
    }
    if (list->resource_version.empty()) return {};
    return cache.end_list(list->resource_version);
  }
  if (const auto* upsert = std::get_if<Upsert>(&delta)) {
    auto object = read_as<T>(from_json, *upsert->object);
    if (!object) return {};
    std::vector<T> changed;
    if (const T* old = cache.find(meta_of(*object).key())) changed.push_back(*old);
    if (!cache.upsert(*object)) return {};
    changed.push_back(*std::move(object));
    return changed;
  }
  auto object = read_as<T>(from_json, *std::get<Erase>(delta).object);
  if (!object || !cache.erase(*object)) return {};
  return {*std::move(object)};
}

template <typename T>
std::vector<ObjectKey> jobs_touched(const std::vector<T>& changed) {
  std::set<ObjectKey> keys;
  for (const T& object : changed) keys.insert(job_of(object));
  return {keys.begin(), keys.end()};
}

}  // namespace

std::vector<Pod> View::pods_of(const ObjectKey& job) const {
  std::vector<Pod> pods;
  const auto found = pod_names_.find(job);
  if (found == pod_names_.end()) return pods;
  for (const std::string& name : found->second) {
    const PackedPod* packed = pods_.find({job.ns, name});
    if (packed == nullptr) continue;
    Pod pod = packed->unpack();
    if (pod.job_name == job.name) pods.push_back(std::move(pod));
  }
  return pods;
}

std::vector<Pod> View::departed_of(const ObjectKey& job) const {
  std::vector<Pod> pods;
  const auto found = departed_.find(job);
  if (found == departed_.end()) return pods;
  for (const auto& [name, packed] : found->second) pods.push_back(packed.unpack());
  return pods;
}

/// Nothing else would tell how it ended, if its end and its deletion come before the job is looked
/// at. No more than a pod for each rank, whatever a tenant creates and deletes.
void View::remember(const Pod& deleted) {
  const TrainingJob* job = jobs_.find(job_of(deleted));
  if (job == nullptr || !has_departed(*job, deleted)) return;
  departed_[job->meta.key()].insert_or_assign(deleted.meta.name, PackedPod(deleted));
}

bool View::knows(Resource resource, const ObjectKey& key) const {
  switch (resource) {
    case Resource::training_jobs: return jobs_.find(key) != nullptr;
    case Resource::pods: return pods_.find(key) != nullptr;
    case Resource::services: return services_.find(key) != nullptr;
    case Resource::nodes: return nodes_.find(key) != nullptr;
    case Resource::events:
    case Resource::leases:
    case Resource::network_policies:
    case Resource::config_maps:
    case Resource::self_subject_reviews: break;  // not watched
  }
  return true;
}

std::vector<Node> View::nodes_of(const std::vector<Pod>& pods) const {
  std::map<std::string, const Node*> by_name;
  for (const Pod& pod : pods) by_name.emplace(pod.node, nodes_.find({"", pod.node}));
  std::vector<Node> nodes;
  for (const auto& [name, node] : by_name) {
    if (node != nullptr) nodes.push_back(*node);
  }
  return nodes;
}

/// Its silence by our own clock, as that of the node controller may be fast or slow: it begins no
/// later than now, and a node that was heard of until now is silent since now.
Result<Node> View::read_node(const json& object) const {
  auto node = trim_node(object);
  if (!node || !node->silent_since) return node;
  const TimePoint now = now_();
  const Node* known = nodes_.find(node->meta.key());
  node->silent_since = std::min(*node->silent_since, now);
  if (known != nullptr) {
    node->silent_since = std::max(*node->silent_since, known->silent_since.value_or(now));
  }
  return node;
}

std::vector<ObjectKey> View::apply_nodes(const WatchDelta& delta) {
  std::set<std::string> news;
  const auto read_one = [this](const json& object) { return read_node(object); };
  for (const Node& changed : feed(nodes_, read_one, delta)) {
    const std::string& name = changed.meta.name;
    const Node* now = nodes_.find(changed.meta.key());
    const auto silent_since = now != nullptr ? now->silent_since : std::nullopt;
    const auto told = silent_nodes_.find(name);
    const bool is_known =
        told == silent_nodes_.end() ? !silent_since : silent_since == told->second;
    if (is_known) continue;
    news.insert(name);
    if (silent_since) {
      silent_nodes_.insert_or_assign(name, *silent_since);
    } else {
      silent_nodes_.erase(name);
    }
  }
  std::set<ObjectKey> jobs;
  if (news.empty()) return {};
  for (const auto& [key, packed] : pods_.objects()) {
    const Pod pod = packed.unpack();
    if (news.contains(pod.node)) jobs.insert(job_of(pod));
  }
  return {jobs.begin(), jobs.end()};
}

void View::forget_nodes() {
  nodes_ = {};
  silent_nodes_.clear();
}

std::vector<ObjectKey> View::apply(Resource resource, const WatchDelta& delta) {
  switch (resource) {
    case Resource::training_jobs: return jobs_touched(feed(jobs_, job_from_json, delta));
    case Resource::services: return jobs_touched(feed(services_, trim_service, delta));
    case Resource::nodes: return apply_nodes(delta);
    case Resource::pods: break;
    case Resource::events:
    case Resource::leases:
    case Resource::network_policies:
    case Resource::config_maps:
    case Resource::self_subject_reviews: return {};
  }
  std::vector<Pod> changed;
  for (const PackedPod& pod : feed(pods_, trim_and_pack, delta)) changed.push_back(pod.unpack());
  for (const Pod& pod : changed) unindex(pod);
  if (std::holds_alternative<Erase>(delta)) {
    for (const Pod& pod : changed) remember(pod);
  }
  for (const Pod& pod : changed) {
    if (const PackedPod* now = pods_.find(pod.meta.key())) index(now->unpack());
  }
  return jobs_touched(changed);
}

bool View::wrote(Resource resource, const std::string& body) {
  if (!is_cached(resource)) return true;
  const json object = read::parse(read::without_managed_fields(body, 2));
  if (resource == Resource::training_jobs) {
    auto job = read_as<TrainingJob>(job_from_json, object);
    return job && jobs_.wrote(*std::move(job));
  }
  if (resource == Resource::services) {
    auto service = read_as<Service>(trim_service, object);
    return service && services_.wrote(*std::move(service));
  }
  auto pod = read_as<Pod>(trim_pod, object);
  if (!pod || !pods_.wrote(PackedPod(*pod))) return false;
  index(*pod);
  return true;
}

void View::forget_pod(const ObjectKey& key, const std::string& uid) {
  const PackedPod* known = pods_.find(key);
  if (known == nullptr || meta_of(*known).uid != uid) return;
  const PackedPod pod = *known;
  pods_.erase(pod);
  unindex(pod.unpack());
}

void View::index(const Pod& pod) {
  std::vector<std::string>& names = pod_names_[job_of(pod)];
  const auto place = std::lower_bound(names.begin(), names.end(), pod.meta.name);
  if (place == names.end() || *place != pod.meta.name) names.insert(place, pod.meta.name);
}

void View::unindex(const Pod& pod) {
  const auto found = pod_names_.find(job_of(pod));
  if (found == pod_names_.end()) return;
  std::erase(found->second, pod.meta.name);
  if (found->second.empty()) pod_names_.erase(found);
}

std::optional<nlohmann::json> parse_object(const std::string& text) {
  json object = read::parse(text);
  if (object.is_object()) return object;
  return std::nullopt;
}

}  // namespace tj
