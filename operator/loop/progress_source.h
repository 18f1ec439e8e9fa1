// The seam towards the pods: how the document of contract/progress.h is fetched from rank 0.
// HttpProgressSource asks the pod; tests have a fake that works.
#pragma once
#include <functional>
#include <string>

#include "contract/progress.h"

namespace tj {

struct ProgressTarget {
  std::string ip;
  int port = 0;
  bool operator==(const ProgressTarget&) const = default;
};

enum class PollResult {
  read,
  refused,      // nobody listens there: a foreign image, or rank 0 has not come so far
  unreachable,  // no connection within the time: the network's affair, or a full backlog
  no_answer,    // connected, and then nothing, or not all of it
  invalid,      // an answer that is no progress document
};
const char* to_string(PollResult result);  // "read", "refused", ...: label of a metric

struct PollAnswer {
  PollResult result = PollResult::unreachable;
  Progress document;  // of `read`
};

class ProgressSource {
 public:
  using Done = std::function<void(PollAnswer answer)>;
  virtual ~ProgressSource() = default;
  /// Calls `done` once, in a later turn of the loop and within a bounded time. It may come when the
  /// source is gone.
  virtual void fetch(const ProgressTarget& target, Done done) = 0;
};

}  // namespace tj
