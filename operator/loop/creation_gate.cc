#include "operator/loop/creation_gate.h"

#include <algorithm>

namespace tj {

bool CreationGate::enter(const ObjectKey& job, int workers, SteadyTime now) {
  if (namespaces_.empty()) creating_since_ = now;
  Namespace& ns = namespaces_[job.ns];
  const bool is_next = ns.invited == job.name || (ns.invited.empty() && ns.waiting.empty());
  if (is_next && ns.workers < workers_max_) {
    ns.invited.clear();
    ns.inside[job.name] = workers;
    ns.workers += workers;
    let_next_in(job.ns);
    return true;
  }
  const bool waits = std::find(ns.waiting.begin(), ns.waiting.end(), job.name) != ns.waiting.end();
  if (!waits && ns.invited != job.name) ns.waiting.push_back(job.name);
  return false;
}

void CreationGate::created_one(const ObjectKey& job) {
  const auto found = namespaces_.find(job.ns);
  if (found == namespaces_.end()) return;
  Namespace& ns = found->second;
  const auto inside = ns.inside.find(job.name);
  if (inside == ns.inside.end() || inside->second == 0) return;
  --inside->second;
  --ns.workers;
  let_next_in(job.ns);
}

void CreationGate::leave(const ObjectKey& job) {
  const auto found = namespaces_.find(job.ns);
  if (found == namespaces_.end()) return;
  Namespace& ns = found->second;
  if (const auto inside = ns.inside.find(job.name); inside != ns.inside.end()) {
    ns.workers -= inside->second;
    ns.inside.erase(inside);
  }
  std::erase(ns.waiting, job.name);
  if (ns.invited == job.name) ns.invited.clear();
  let_next_in(job.ns);
  if (ns.inside.empty() && ns.waiting.empty() && ns.invited.empty()) namespaces_.erase(found);
}

void CreationGate::let_next_in(const std::string& ns_name) {
  Namespace& ns = namespaces_.at(ns_name);
  if (!ns.invited.empty() || ns.waiting.empty() || ns.workers >= workers_max_) return;
  ns.invited = ns.waiting.front();
  ns.waiting.pop_front();
  invite_({ns_name, ns.invited});
}

}  // namespace tj
