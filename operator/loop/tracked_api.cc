#include "operator/loop/tracked_api.h"

namespace tj {

void TrackedApi::send(Request request, Done done) {
  if (closed_) return;
  ++in_flight_;
  const Verb verb = request.verb;
  const Resource resource = request.resource;
  api_.send(std::move(request), [this, alive = std::weak_ptr(alive_), verb, resource,
                                 done = std::move(done)](Result<std::string> body) {
    if (alive.expired()) return;
    --in_flight_;
    metrics_.count_request(verb, resource, body ? "ok" : to_string(body.error().code));
    done(std::move(body));
  });
}

std::unique_ptr<WatchStream> TrackedApi::watch(WatchRequest request, WatchHandler handler) {
  if (closed_) return nullptr;
  return api_.watch(std::move(request), std::move(handler));
}

}  // namespace tj
