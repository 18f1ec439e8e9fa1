// Stands between the loop and its KubeApi: sees to it that no callback reaches a controller that is
// gone, that nothing is sent any more after `close`, nothing is changed by one who may not, and
// that a burst of jobs does not open a connection for each of its requests.
#pragma once
#include <cstddef>
#include <deque>
#include <memory>

#include "operator/kube/kube_api.h"

namespace tj {

class TrackedApi final : public KubeApi {
 public:
  /// Requests at a time; the others wait in turn. Each has its connection, which over TLS costs
  /// the operator 100 kB and both sides a handshake; beyond a few dozen a server gets no faster.
  static constexpr std::size_t kAtOnceMax = 32;

  explicit TrackedApi(KubeApi& api, std::size_t at_once_max = kAtOnceMax)
      : api_(api), at_once_max_(at_once_max) {}

  /// After `close` the request and its `done` are dropped; so is a write that the gate refuses.
  void send(Request request, Done done) override;
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override;

  void close();
  void set_write_gate(std::function<bool()> may_write) { may_write_ = std::move(may_write); }
  /// Runs `action` once no answer is to come: now, or after the last one.
  void when_idle(std::function<void()> action);
  std::size_t in_flight() const { return in_flight_; }
  bool is_idle() const { return in_flight_ == 0 && waiting_.empty(); }

 private:
  struct Waiting {
    Request request;
    Done done;
  };
  void send_next();
  bool may_send(const Request& request) const;

  KubeApi& api_;
  const std::size_t at_once_max_;
  std::function<bool()> may_write_;  // empty: yes
  std::function<void()> when_idle_;
  std::deque<Waiting> waiting_;  // bounded by the jobs in work and by what each asks for at a time
  bool closed_ = false;
  std::size_t in_flight_ = 0;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace tj
