#include "operator/loop/tracked_api.h"

#include <utility>

namespace tj {

bool TrackedApi::may_send(const Request& request) const {
  const bool is_write = request.verb != Verb::get && request.verb != Verb::list;
  return !is_write || !may_write_ || may_write_();
}

void TrackedApi::send(Request request, Done done) {
  if (closed_ || !may_send(request)) return;
  waiting_.push_back({std::move(request), std::move(done)});
  send_next();
}

void TrackedApi::send_next() {
  while (in_flight_ < at_once_max_ && !waiting_.empty()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (!may_send(next.request)) continue;  // the right to write was lost while it waited
    ++in_flight_;
    api_.send(std::move(next.request), [this, alive = std::weak_ptr(alive_),
                                        done = std::move(next.done)](Result<std::string> body) {
      if (alive.expired()) return;
      --in_flight_;
      done(std::move(body));
      if (alive.expired()) return;
      send_next();
      if (is_idle() && when_idle_) std::exchange(when_idle_, nullptr)();
    });
  }
}

void TrackedApi::close() {
  closed_ = true;
  waiting_.clear();
}

void TrackedApi::when_idle(std::function<void()> action) {
  if (is_idle()) return action();
  when_idle_ = std::move(action);
}

std::unique_ptr<WatchStream> TrackedApi::watch(WatchRequest request, WatchHandler handler) {
  if (closed_) return nullptr;
  return api_.watch(std::move(request), std::move(handler));
}

}  // namespace tj
