// Stands between the loop and its KubeApi: sees to it that no callback reaches a controller that is
// gone, that nothing is sent any more after `close`, and nothing is changed by one who may not.
#pragma once
#include <cstddef>
#include <memory>

#include "operator/kube/kube_api.h"

namespace tj {

class TrackedApi final : public KubeApi {
 public:
  explicit TrackedApi(KubeApi& api) : api_(api) {}

  /// After `close` the request and its `done` are dropped; so is a write that the gate refuses.
  void send(Request request, Done done) override;
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override;

  void close() { closed_ = true; }
  void set_write_gate(std::function<bool()> may_write) { may_write_ = std::move(may_write); }
  /// Runs `action` once no answer is to come: now, or after the last one.
  void when_idle(std::function<void()> action);
  std::size_t in_flight() const { return in_flight_; }

 private:
  KubeApi& api_;
  std::function<bool()> may_write_;  // empty: yes
  std::function<void()> when_idle_;
  bool closed_ = false;
  std::size_t in_flight_ = 0;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace tj
