// Asks rank 0 of each running job how it is doing, again and again: which pod, when, how many at a
// time, and how seldom where nobody answers. What it learns goes into Observed, and only plan/
// judges it. Nothing here has to outlive the process.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "operator/loop/alarm.h"
#include "operator/loop/metrics.h"
#include "operator/loop/progress_source.h"
#include "operator/plan/plan.h"

namespace tj {

class ProgressPoller {
 public:
  static constexpr std::chrono::milliseconds kInterval{10'000};
  static constexpr std::chrono::milliseconds kIntervalMin{2'000};
  static constexpr std::chrono::milliseconds kFirstMax{2'000};      // after rank 0 runs
  static constexpr std::chrono::milliseconds kBackoffMax{300'000};  // where nobody answers
  static constexpr int kPollsPerTimeout = 4;  // so many in each runPolicy.heartbeatTimeoutSeconds
  static constexpr int kFailuresToTell = 3;   // fewer in a row say nothing about a hang
  static constexpr std::size_t kAtOnceMax = 64;  // of all jobs
  /// Writes of progress, of all jobs together.
  static constexpr int kWritesPerSecondMax = 5;

  /// `source` null: nobody is asked. `wake`: something is news that may matter for this job.
  ProgressPoller(ProgressSource* source, Alarm& alarm, Metrics& metrics,
                 std::function<void(const ObjectKey& key)> wake)
      : source_(source), alarm_(alarm), metrics_(metrics), wake_(std::move(wake)) {}

  /// The job as it is now: from now on its rank 0 is asked, if there is one of the current attempt.
  /// Returns what is known of that very pod.
  std::optional<ProgressNews> look(const TrainingJob& job, const std::vector<Pod>& pods);
  void forget(const ObjectKey& key);
  /// Nobody is asked any more, and no answer is listened to.
  void stop();

  /// For Observed::progress_interval.
  std::chrono::milliseconds write_interval() const;
  std::size_t asked_count() const { return asked_count_; }

 private:
  /// Who is asked next, by the keys in entries_.
  using Schedule = std::multimap<SteadyTime, const ObjectKey*>;
  struct Entry {
    unsigned long long number = 0;  // of another pod or port it is another one
    std::string pod_uid;
    int attempt = 0;
    ProgressTarget target;
    std::optional<std::chrono::seconds> heartbeat_timeout;
    bool was_read = false;  // in this attempt, by anybody
    bool is_asked = false;
    bool in_flight = false;
    std::optional<Schedule::iterator> due;
    int failures = 0;                         // in a row
    std::optional<SteadyTime> failing_since;  // the first of them that counts
    SteadyTime failed_last{};
    std::optional<Progress> document;
  };
  static std::chrono::milliseconds unreadable_for(const Entry& entry);
  using Entries = std::map<ObjectKey, Entry>;
  void set_asked(Entries::value_type& known, bool is_asked);
  void schedule(Entries::value_type& known, std::chrono::milliseconds delay);
  void unschedule(Entry& entry);
  std::chrono::milliseconds wait_after(const Entry& entry);
  std::chrono::milliseconds up_to(std::chrono::milliseconds max);
  void pump();
  void take(const ObjectKey& key, unsigned long long number, PollAnswer answer);
  /// True if the job should be looked at because of it.
  static bool learn(Entry& entry, PollAnswer answer, SteadyTime now);

  ProgressSource* source_;
  Alarm& alarm_;
  Metrics& metrics_;
  std::function<void(const ObjectKey& key)> wake_;
  Entries entries_;
  Schedule due_;
  std::size_t in_flight_ = 0;
  unsigned long long next_number_ = 0;
  std::size_t asked_count_ = 0;
  bool stopped_ = false;
  std::minstd_rand jitter_;  // each operator the same: only that jobs differ matters
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace tj
