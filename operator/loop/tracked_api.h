// Stands between the loop and its KubeApi: sees to it that no callback reaches a controller that is
// gone, and that nothing is sent any more after `close`.
#pragma once
#include <cstddef>
#include <memory>

#include "operator/kube/kube_api.h"

namespace tj {

class TrackedApi final : public KubeApi {
 public:
  explicit TrackedApi(KubeApi& api) : api_(api) {}

  /// After `close` the request and its `done` are dropped.
  void send(Request request, Done done) override;
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override;

  void close() { closed_ = true; }
  std::size_t in_flight() const { return in_flight_; }

 private:
  KubeApi& api_;
  bool closed_ = false;
  std::size_t in_flight_ = 0;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace tj
