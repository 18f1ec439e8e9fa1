// Sends any number of requests, so many at a time. For the loads of the benchmark.
#pragma once
#include <deque>
#include <functional>
#include <string>

#include "operator/kube/kube_api.h"

namespace tj {

/// On the loop thread.
class RequestWindow {
 public:
  using Ended = std::function<void(const Result<std::string>& answer)>;

  /// `ended` is called after each request.
  RequestWindow(KubeApi& api, std::size_t width, Ended ended)
      : api_(api), width_(width), ended_(std::move(ended)) {}

  void add(Request request) {
    waiting_.push_back(std::move(request));
    pump();
  }
  bool is_empty() const { return in_flight_ == 0 && waiting_.empty(); }

 private:
  void pump() {
    while (in_flight_ < width_ && !waiting_.empty()) {
      ++in_flight_;
      Request request = std::move(waiting_.front());
      waiting_.pop_front();
      api_.send(std::move(request), [this](const Result<std::string>& answer) {
        --in_flight_;
        pump();
        ended_(answer);
      });
    }
  }

  KubeApi& api_;
  const std::size_t width_;
  const Ended ended_;
  std::deque<Request> waiting_;
  std::size_t in_flight_ = 0;
};

}  // namespace tj
