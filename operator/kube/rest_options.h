// What the clients of a real API server have in common: their bounds, and what they tell of each
// request.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "operator/kube/kube_api.h"

namespace tj {

/// One finished request: `code` is the HTTP status as text, or "timeout", "unavailable", ... where
/// there was none.
struct RequestObservation {
  Verb verb = Verb::get;
  Resource resource = Resource::pods;
  std::string code;
  std::chrono::duration<double> seconds{0};
};

struct RestOptions {
  std::size_t body_bytes_max = 64 * 1024 * 1024;  // of one answer, and of what a watch has not read
  std::size_t line_bytes_max =
      16 * 1024 * 1024;  // of one watch event; etcd's objects end at 1.5 MB
  /// A watch that says nothing for so long is dead: a server sends bookmarks about each minute.
  std::chrono::milliseconds watch_idle_max{150'000};
  std::string user_agent = "trainingjob-operator";
  /// Called on the loop thread for each finished request, before its callback. May be empty.
  std::function<void(const RequestObservation&)> observe;
};

}  // namespace tj
