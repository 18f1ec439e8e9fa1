// A loop thread for tests: runs the client's callbacks until a condition holds, within a deadline.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/rest_kube_api.h"

namespace tj {

class ClientLoop {
 public:
  RestKubeApi::Post post() {
    return
        [this](std::function<void()> function) { boost::asio::post(loop_, std::move(function)); };
  }
  boost::asio::io_context& io() { return loop_; }
  /// False when `until` did not hold within `deadline`.
  bool run_until(const std::function<bool()>& until,
                 std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!until()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      if (loop_.run_one_until(std::min(end, std::chrono::steady_clock::now() + kLook)) == 0) {
        loop_.restart();
      }
    }
    return true;
  }
  /// Sends and waits.
  Result<std::string> ask(KubeApi& api, Request request) {
    std::optional<Result<std::string>> answer;
    api.send(std::move(request), [&](Result<std::string> body) { answer = std::move(body); });
    const bool answered = run_until([&] { return answer.has_value(); });
    TJ_CHECK(answered, "no callback");
    return *answer;
  }

 private:
  static constexpr std::chrono::milliseconds kLook{20};  // conditions may change without a callback
  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(loop_);
};

/// What a watch brought.
struct WatchLog {
  std::vector<std::string> lines;
  std::optional<Result<void>> end;
  WatchHandler handler() {
    return {.on_line = [this](std::string line) { lines.push_back(std::move(line)); },
            .on_end = [this](Result<void> why) { end = std::move(why); }};
  }
};

}  // namespace tj
