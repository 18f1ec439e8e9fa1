// The logs of containers as a kubelet keeps them, in memory: lines with their times, what may be
// asked of them, and who follows. Synchronous and deterministic; MemoryApi serves it as the
// subresource `log` of its pods.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "operator/kube/kube_api.h"

namespace tj {

/// `previous`: of the container before its last restart.
struct LogKey {
  std::string ns;
  std::string pod;
  std::string container;
  bool previous = false;
  auto operator<=>(const LogKey&) const = default;
};

struct LogEntry {
  std::chrono::sys_time<std::chrono::nanoseconds> time;
  std::string text;
};

class LogStore {
 public:
  /// Called for each line that is added, and for a log's end (no entry).
  using Listener = std::function<void(const LogKey& key, const LogEntry* entry)>;
  void set_listener(Listener listener) { listener_ = std::move(listener); }

  void append(const LogKey& key, LogEntry entry);
  /// The container has ended: those who follow have heard all.
  void end(const LogKey& key);
  /// What a kubelet does when a log is too long: what was written so far can't be read any more.
  void rotate(const LogKey& key);

  /// The container is no more, and its log with it.
  void forget(const LogKey& key);

  bool has(const LogKey& key) const { return logs_.contains(key); }
  bool has_ended(const LogKey& key) const;
  /// The lines that these options choose, as a kubelet writes them.
  std::vector<std::string> read(const LogKey& key, const LogOptions& options) const;

 private:
  struct Log {
    std::vector<LogEntry> entries;
    bool has_ended = false;
  };
  std::map<LogKey, Log> logs_;
  Listener listener_;
};

/// "2026-11-21T01:10:40.000000001Z text", or the text alone.
std::string log_line(const LogEntry& entry, bool timestamps);

}  // namespace tj
