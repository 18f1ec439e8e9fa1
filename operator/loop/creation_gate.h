// Whose workers are created now. Gang after gang, not all at once: where there is room for some
// gangs only, those are whole and run, and none waits for the rest of itself; and each Service's
// Endpoints are written seldom, as its pods come together. By namespace, so that nobody's slow
// webhook holds up the others. Pure; time is passed in.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "operator/api/types.h"
#include "operator/loop/work_queue.h"

namespace tj {

class CreationGate {
 public:
  /// Another gang is let in while fewer workers than `workers_max` are still to be created of those
  /// that are in. `invite`: this job may enter now.
  CreationGate(int workers_max, std::function<void(const ObjectKey& job)> invite)
      : workers_max_(workers_max), invite_(std::move(invite)) {}

  /// False: it is invited later.
  bool enter(const ObjectKey& job, int workers, SteadyTime now);
  /// One of its workers is there, or was refused.
  void created_one(const ObjectKey& job);
  /// It creates nothing now, if it ever did.
  void leave(const ObjectKey& job);
  /// Since when somebody has been in, or about to be, at any moment; absent: nobody is.
  std::optional<SteadyTime> creating_since() const {
    return namespaces_.empty() ? std::nullopt : std::optional(creating_since_);
  }

 private:
  struct Namespace {
    std::map<std::string, int> inside;  // by job: workers that are still to be created
    int workers = 0;                    // the sum of that
    std::deque<std::string> waiting;
    std::string invited;  // empty: nobody
  };
  void let_next_in(const std::string& ns);

  int workers_max_;
  std::function<void(const ObjectKey& job)> invite_;
  std::map<std::string, Namespace> namespaces_;  // where anybody is in or waits
  SteadyTime creating_since_{};
};

}  // namespace tj
