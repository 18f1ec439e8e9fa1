// The window of rank 0: /progress and /metrics over HTTP/1.1, on a thread of its own, which answers
// while the training thread is stuck. It also calls back each second.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "contract/result.h"

namespace tj::trainer {

struct ProgressPages {
  std::function<std::string()> progress;  // JSON; called on the server's thread, as is the next
  std::function<std::string()> metrics;   // Prometheus' text
};

class ProgressServer {
 public:
  static constexpr int kConnectionsMax = 16;
  static constexpr std::chrono::seconds kConnectionMax{5};  // from accept to the end of the answer
  static constexpr std::size_t kRequestBytesMax = 8 * 1024;
  static constexpr std::chrono::seconds kTick{1};

  /// `on_tick` is called on the server's thread each kTick.
  ProgressServer(ProgressPages pages, std::function<void()> on_tick);
  ~ProgressServer();

  /// Listens at `port`, on all addresses or on 127.0.0.1. Fails with the port and the cause.
  Result<void> listen(int port, bool on_all_addresses);
  /// Starts the thread; last.
  void start();
  /// Ends the thread; a connection that is open is cut.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tj::trainer
