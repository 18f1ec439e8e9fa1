#include "operator/loop/tracked_api.h"

#include <utility>

namespace tj {

void TrackedApi::send(Request request, Done done) {
  if (closed_) return;
  const bool is_write = request.verb != Verb::get && request.verb != Verb::list;
  if (is_write && may_write_ && !may_write_()) return;
  ++in_flight_;
  api_.send(std::move(request), [this, alive = std::weak_ptr(alive_),
                                 done = std::move(done)](Result<std::string> body) {
    if (alive.expired()) return;
    --in_flight_;
    done(std::move(body));
    if (alive.expired() || in_flight_ != 0 || !when_idle_) return;
    std::exchange(when_idle_, nullptr)();
  });
}

void TrackedApi::when_idle(std::function<void()> action) {
  if (in_flight_ == 0) return action();
  when_idle_ = std::move(action);
}

std::unique_ptr<WatchStream> TrackedApi::watch(WatchRequest request, WatchHandler handler) {
  if (closed_) return nullptr;
  return api_.watch(std::move(request), std::move(handler));
}

}  // namespace tj
