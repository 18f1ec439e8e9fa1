#include "operator/loop/view.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "operator/api/json.h"
#include "operator/loop/log_text.h"

namespace tj {
namespace {
using nlohmann::json;

/// The library throws on odd values that the readers do not expect; here that is one bad object.
template <typename T>
std::optional<T> read(Result<T> (*from_json)(const json&), const std::string& text) {
  try {
    auto object = from_json(json::parse(text));
    if (object) return *std::move(object);
    spdlog::warn("msg=\"object left out\" error={}", log_value(describe(object.error())));
  } catch (const json::exception& error) {
    spdlog::warn("msg=\"object left out\" error={}", log_value(error.what()));
  }
  return std::nullopt;
}

ObjectKey job_of(const TrainingJob& job) { return job.meta.key(); }
ObjectKey job_of(const Pod& pod) { return {pod.meta.ns, pod.job_name}; }
ObjectKey job_of(const Service& service) { return {service.meta.ns, service.job_name}; }

/// Applies a delta to one cache; returns every object that changed, in its old and its new form.
template <typename T>
std::vector<T> feed(Cache<T>& cache, Result<T> (*from_json)(const json&), const WatchDelta& delta) {
  if (const auto* list = std::get_if<Replace>(&delta)) {
    std::vector<T> objects;
    for (const std::string& text : list->objects) {
      if (auto object = read(from_json, text)) objects.push_back(*std::move(object));
    }
    return cache.replace(std::move(objects), list->resource_version);
  }
  if (const auto* upsert = std::get_if<Upsert>(&delta)) {
    auto object = read(from_json, upsert->object);
    if (!object) return {};
    std::vector<T> changed;
    if (const T* old = cache.find(object->meta.key())) changed.push_back(*old);
    if (!cache.upsert(*object)) return {};
    changed.push_back(*std::move(object));
    return changed;
  }
  auto object = read(from_json, std::get<Erase>(delta).object);
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
    const Pod* pod = pods_.find({job.ns, name});
    if (pod != nullptr && pod->job_name == job.name) pods.push_back(*pod);
  }
  return pods;
}

std::vector<ObjectKey> View::apply(Resource resource, const WatchDelta& delta) {
  switch (resource) {
    case Resource::training_jobs: return jobs_touched(feed(jobs_, job_from_json, delta));
    case Resource::services: return jobs_touched(feed(services_, trim_service, delta));
    case Resource::pods: break;
    case Resource::events:
    case Resource::leases:
    case Resource::nodes:
    case Resource::network_policies: return {};
  }
  const std::vector<Pod> changed = feed(pods_, trim_pod, delta);
  for (const Pod& pod : changed) unindex(pod);
  for (const Pod& pod : changed) {
    if (const Pod* now = pods_.find(pod.meta.key())) index(*now);
  }
  return jobs_touched(changed);
}

bool View::wrote(Resource resource, const std::string& body) {
  if (resource == Resource::training_jobs) {
    auto job = read(job_from_json, body);
    return job && jobs_.wrote(*std::move(job));
  }
  if (resource == Resource::services) {
    auto service = read(trim_service, body);
    return service && services_.wrote(*std::move(service));
  }
  auto pod = read(trim_pod, body);
  if (!pod || !pods_.wrote(*pod)) return false;
  index(*pod);
  return true;
}

void View::forget_pod(const ObjectKey& key, const std::string& uid) {
  const Pod* known = pods_.find(key);
  if (known == nullptr || known->meta.uid != uid) return;
  const Pod pod = *known;
  pods_.erase(pod);
  unindex(pod);
}

void View::index(const Pod& pod) { pod_names_[job_of(pod)].insert(pod.meta.name); }

void View::unindex(const Pod& pod) {
  const auto found = pod_names_.find(job_of(pod));
  if (found == pod_names_.end()) return;
  found->second.erase(pod.meta.name);
  if (found->second.empty()) pod_names_.erase(found);
}

std::optional<nlohmann::json> parse_object(const std::string& text) {
  json object = json::parse(text, nullptr, false);
  if (object.is_object()) return object;
  return std::nullopt;
}

}  // namespace tj
