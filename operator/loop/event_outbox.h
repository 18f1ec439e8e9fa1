// Sends the events of each namespace one after the other, after the status writes they report, and
// those of one namespace beside those of another. What can't be delivered in a few tries is dropped
// and logged: events are news, not state. The same event has the same name (plan/manifest.h), so
// that sending it again does no harm.
#pragma once
#include <deque>
#include <map>
#include <string>

#include "operator/kube/kube_api.h"
#include "operator/loop/alarm.h"

namespace tj {

class EventOutbox {
 public:
  static constexpr std::size_t kWaitingMax = 1'000;  // of one namespace
  static constexpr int kTriesMax = 5;
  static constexpr std::chrono::milliseconds kRetryWait{1'000};
  static constexpr std::chrono::milliseconds kRetryWaitMax{30'000};

  EventOutbox(KubeApi& api, Alarm& alarm) : api_(api), alarm_(alarm) {}
  /// `body` is the event's JSON.
  void add(const ObjectKey& job, std::string body);

 private:
  struct PendingEvent {
    ObjectKey job;
    std::string body;
    int tries = 0;
  };
  void send_first(const std::string& ns);
  void answered(const std::string& ns, const Result<std::string>& answer);

  KubeApi& api_;
  Alarm& alarm_;
  std::map<std::string, std::deque<PendingEvent>> pending_;  // the first of each is under way
};

}  // namespace tj
