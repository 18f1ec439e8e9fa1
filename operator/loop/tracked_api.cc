#include "operator/loop/tracked_api.h"

namespace tj {

void TrackedApi::send(Request request, Done done) {
  if (closed_) return;
  ++in_flight_;
  api_.send(std::move(request), [this, alive = std::weak_ptr(alive_),
                                 done = std::move(done)](Result<std::string> body) {
    if (alive.expired()) return;
    --in_flight_;
    done(std::move(body));
  });
}

std::unique_ptr<WatchStream> TrackedApi::watch(WatchRequest request, WatchHandler handler) {
  if (closed_) return nullptr;
  return api_.watch(std::move(request), std::move(handler));
}

}  // namespace tj
