// The facts of the store that the invariants speak of, kept up to date change by change. It reads
// the objects by itself and not through the operator's readers: a bug there can't hide here.
#pragma once
#include <map>
#include <set>
#include <string>

#include "operator/local/object_store.h"

namespace tj::sim {

struct PodFacts {
  ObjectKey key;
  std::string uid;
  std::string job_uid;  // of the controller; empty: a foreign pod
  int rank = -1;
  int attempt = -1;
  int world_size = -1;      // from the environment of its main container
  int env_attempt = -1;     // the same
  int env_rank = -1;        // the same
  std::string env_job_uid;  // the same
  std::string made_from;    // image of its main container and master port
  std::string node;
  std::string phase;
  bool is_marked = false;  // for deletion
  bool is_done = false;    // phase Succeeded or Failed
  bool has_exit = false;   // its main container has ended
  std::string started_at;  // of its main container, while it runs
};

struct JobFacts {
  ObjectKey key;
  std::string uid;
  bool is_gone = false;
  bool is_marked = false;  // for deletion
  long long generation = 0;
  // The status.
  std::string phase;
  std::string reason;
  std::string message;
  std::string completion_time;
  std::string first_failure;  // its JSON
  long long observed_generation = 0;
  int attempt = 0;
  int restarts = 0;
  int restarts_counted = 0;
  int restarts_uncounted = 0;
  std::set<int> succeeded_ranks;  // of this attempt
  int failed_rank = -1;           // of the first failure
  int restart_step = 0;
  int reached_step = -1;      // of the last checkpoint, else of the progress; -1: not told
  int progress_attempt = -1;  // -1: none
  int world_size = 0;         // 0: not recorded
  int active = 0;
  int ready = 0;
  int succeeded = 0;
  // The spec.
  int replicas = 1;
  bool is_suspended = false;
  int max_restarts = 0;
  bool has_ttl = false;
  bool may_reset_budget = false;  // by time
  bool resets_on_progress = true;
  bool looks_for_hangs = false;
  std::string clean_pods;
};

bool is_terminal(const JobFacts& job);
PodFacts read_pod(const nlohmann::json& pod);
JobFacts read_job(const nlohmann::json& job);

class Mirror {
 public:
  void apply(const ObjectChange& change);

  const std::map<std::string, PodFacts>& pods() const { return pods_; }  // by uid
  const std::map<std::string, JobFacts>& jobs() const { return jobs_; }  // by uid; gone ones too
  const std::set<std::string>& silent_nodes() const { return silent_nodes_; }
  const PodFacts* pod(const std::string& uid) const;
  const JobFacts* job(const std::string& uid) const;
  /// The living job of this name.
  const JobFacts* job(const ObjectKey& key) const;

 private:
  std::map<std::string, PodFacts> pods_;
  std::map<std::string, JobFacts> jobs_;
  std::set<std::string> silent_nodes_;
};

}  // namespace tj::sim
