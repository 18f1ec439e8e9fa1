// What the page shows: jobs, the lives of their workers over all attempts, and series of their
// progress. Fed with objects of an API server as they come and go; what the server forgets (pods of
// earlier attempts, progress) is remembered here, within bounds. Pure: no socket, no clock.
#pragma once
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/ui/run_files.h"
#include "cli/ui/series.h"
#include "operator/api/types.h"
#include "operator/kube/watcher.h"

namespace tj::ui {

/// One pod of one rank, from its creation to its end.
struct WorkerLife {
  int rank = 0;
  int attempt = 0;
  std::string pod;
  std::string node;
  std::string state;  // "Pending", "Running", "Succeeded", "Failed", or "Gone": it was deleted
  std::optional<TimePoint> created = std::nullopt;
  std::optional<TimePoint> started = std::nullopt;
  std::optional<TimePoint> ended = std::nullopt;
  std::optional<int> exit_code = std::nullopt;
  std::string reason = {};
  std::string message = {};
  bool operator==(const WorkerLife&) const = default;
};

struct RankRange {
  int from = 0;
  int count = 64;
};

/// Which of the listed objects are no more: what a list does not name has gone.
class ListedNames {
 public:
  struct Change {
    std::vector<std::shared_ptr<const nlohmann::json>> there;
    std::vector<std::string> gone;  // uids
  };
  Change take(const WatchDelta& delta);

 private:
  std::set<std::string> known_;   // uids
  std::set<std::string> listed_;  // so far, by a list that is not complete
};

class Board {
 public:
  static constexpr std::size_t kLivesMax = 20'000;  // of one job; the oldest attempts go first
  static constexpr std::size_t kEventsMax = 200;    // of one job, the newest
  static constexpr std::size_t kMessageBytesMax = 2'000;
  static constexpr int kRanksMax = 256;  // in one document

  void apply_jobs(const WatchDelta& delta, TimePoint now);
  void apply_pods(const WatchDelta& delta, TimePoint now);
  /// Replaces what was known of them; objects of the API, of the job and of its pods.
  void set_events(const ObjectKey& job, const std::vector<nlohmann::json>& events);
  /// A life that only a log still tells of; one that a pod tells of wins.
  void add_past_life(const ObjectKey& job, WorkerLife life);
  /// Nobody looks after this run any more, since then: what its objects say will never change.
  void interrupt(const ObjectKey& job, TimePoint since);
  /// What the run's own files say, which is more than its status does.
  void set_files(const ObjectKey& job, const RunFiles& files);

  const TrainingJob* find(const ObjectKey& job) const;
  std::vector<ObjectKey> jobs() const;
  /// The attempt has ended for this rank: its log grows no more.
  bool has_ended(const ObjectKey& job, int rank, int attempt) const;
  /// Of the rank's pod in that attempt, of the newest if there were several; empty: none is known.
  std::string pod_uid(const ObjectKey& job, int rank, int attempt) const;

  /// For the list of jobs, newest first.
  nlohmann::json jobs_document() const;
  /// For one job's page; absent: there is none of that name.
  std::optional<nlohmann::json> job_document(const ObjectKey& job, RankRange ranks) const;
  std::optional<nlohmann::json> series_document(const ObjectKey& job) const;

 private:
  struct Record {
    TrainingJob job;
    std::map<std::string, WorkerLife> lives;  // by the pod's uid, or a name for a log's
    std::map<int, FirstFailure> failures;     // by attempt
    std::map<int, TimePoint> starts;          // by attempt
    std::vector<nlohmann::json> events;       // as the page gets them
    std::optional<TimePoint> interrupted_at;
    RunSeries sampled;
    std::shared_ptr<const RunSeries> files;
    std::optional<FileProgress> file_progress;
    std::map<long long, std::string> checkpoints;
  };

  void put_job(const nlohmann::json& object, TimePoint now);
  void put_pod(const nlohmann::json& object, TimePoint now);
  static void forget_old_lives(Record& record);
  static const RunSeries& series_of(const Record& record);
  static nlohmann::json progress_of(const Record& record);
  static nlohmann::json summary_of(const Record& record);
  static nlohmann::json attempts_of(const Record& record);
  static nlohmann::json ranks_of(const Record& record, RankRange ranks);
  static nlohmann::json nodes_of(const Record& record);
  static nlohmann::json checkpoints_of(const Record& record);

  std::map<ObjectKey, Record> records_;
  std::map<std::string, ObjectKey> job_of_uid_;
  std::map<std::string, ObjectKey> job_of_pod_uid_;
  ListedNames listed_jobs_;
  ListedNames listed_pods_;
};

}  // namespace tj::ui
