// What must hold in every state of the store, whatever happened, and what must hold at rest. Read
// from the server's own objects, never through an operator's caches. In the words of the checks:
//
//   ours      the controller reference of a pod names a job's uid
//   marked    for deletion (deletionTimestamp)
//   doomed    the job's status has already decided that this pod must go: an older attempt, a
//             finished, suspended or deleted job
//
// Live pods of two attempts may stand side by side only while all but those of the newest attempt
// are doomed: no pod is of a newer attempt than the status, and the status never goes back.
#pragma once
#include <optional>
#include <string>

#include "tests/sim/mirror.h"

namespace tj::sim {

/// Whose turn changed the store.
enum class Actor { operators, world, collector };

class Invariants {
 public:
  static constexpr int kRestartsMax = 1'000;

  /// Takes in every change since the last look and checks each. To be called after every step, and
  /// before the history is compacted.
  void look(const ObjectStore& store, Actor actor);
  /// What holds once nothing moves any more.
  void look_at_rest();
  /// Something outside the store that is wrong.
  void report(const std::string& what);

  const Mirror& mirror() const { return mirror_; }
  /// The first invariant that was broken.
  const std::optional<std::string>& violation() const { return violation_; }

 private:
  void check_pod(const PodFacts* before, const PodFacts& after, const ObjectChange& change);
  void check_new_pod(const PodFacts& pod);
  void check_removal(const PodFacts& pod);
  void check_job(const JobFacts* before, const JobFacts& after, const ObjectChange& change);
  void check_progress(const JobFacts& before, const JobFacts& after);
  void check_final(const JobFacts& before, const JobFacts& after);
  void check_job_at_rest(const JobFacts& job);
  void check_gang_at_rest(const JobFacts& job, const std::vector<const PodFacts*>& pods);
  void require(bool holds, const char* invariant, const std::string& about);

  Mirror mirror_;
  Actor actor_ = Actor::world;
  std::uint64_t seen_version_ = 0;
  std::optional<std::string> violation_;
  struct AttemptFacts {
    int world_size = 0;
    std::string made_from;
  };
  std::map<std::pair<std::string, int>, AttemptFacts> attempts_;  // by job uid and attempt
  std::map<std::string, int> restarts_max_;                       // by job uid: ever allowed
  /// Attempt of the last process of a rank that was left to itself on a silent node.
  std::map<std::pair<std::string, int>, int> abandoned_;
};

}  // namespace tj::sim
