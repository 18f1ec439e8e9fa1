// What MemoryApi keeps of a watch, a subscription or a log that is read: of its own sources alone.
#pragma once
#include <deque>

#include "operator/local/label_selector.h"
#include "operator/local/memory_api.h"

namespace tj {

struct MemoryApi::Stream {
  WatchRequest request;
  WatchHandler handler;
  ChangeHandler on_change;  // of a subscription, which has no handler
  LabelSelector selector;
  std::uint64_t told_version = 0;  // the newest version that a line or a bookmark has told
  std::deque<std::string> held_lines;
  std::optional<Result<void>> held_end;
  std::optional<LogKey> log_key;  // of a log that is followed
  bool open = false;
  bool cancelled = false;
};

}  // namespace tj
