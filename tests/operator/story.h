// A story: a text file of steps and what the plan makes of each, readable without C++. After each
// step the job is reconciled until nothing is left to do.
//
//   job NAME workers=N [uid=U] [invalid=FIELD] [SETTING...]   the manifest is applied
//   set SETTING...           the spec is changed: workers=N template=T suspend=true|false
//                            max-restarts=N active-deadline=S start-deadline=S ttl=S
//                            budget-reset=S clean=All|None success=Worker0 tolerance=S
//                            force-delete=S exclude=S managed-by=WHO network-policy=true
//                            heartbeat=S reset-on-progress=false progress-port=N
//                            backoff=S (0 where it is not said) invalid=FIELD|none
//   rule ACTION [code=N] [signal=N] [condition=C] [cause=C]   the next rule of its failure policy
//   start RANK...            kubelet starts these workers ("all": every one)
//   bind RANK NODE           the scheduler has found a node
//   exit RANK code=N [at=S] [started=S] [reason=R] [pod=running] [message=TEXT]
//                            a worker's main container ends at second S; its pod may run on
//   evict RANK               the pod fails as a whole, without an exit code
//   reject RANK REASON       a node does not take the pod
//   disrupt RANK REASON code=N    the pod is asked to leave, and its worker ends of it
//   waiting RANK REASON TEXT...   a worker can't start
//   news RANK REASON TEXT... what the pod's events say
//   read step=N [of=N] [phase=P] [saved=N] [age=S] [stalled=RANK] [for=S]
//                            rank 0 has said how it is doing
//   unreadable S             it has not said anything more for S seconds
//   vanish RANK              the pod is deleted by somebody else, and gone
//   gone                     pods asked to stop have stopped, if their node is heard of
//   silent NODE | heard NODE a node has not been heard of since now; it is heard again
//   leave-behind             the pods there are become those of an earlier attempt
//   run-ahead                ... of the next attempt
//   foreign RANK | foreign service NAME   another owner's object holds the name
//   refuse TEXT... | refuse-for-good TEXT... | accept   creations are refused, or no longer
//   upgrade [invalid=FIELD]  the operator is of a later version, with rules of its own
//   break TEXT...   pods can't be made, for a bug
//   delete                   the job is asked to go
//   now S                    S seconds have passed since the start
#pragma once
#include <string>
#include <vector>

#include "operator/plan/plan.h"

namespace tj {

/// The world of one job, in which plans take effect at once.
class Story {
 public:
  /// `crash_after_each_write`: of each plan only the first write takes effect, then the operator
  /// starts anew.
  explicit Story(bool crash_after_each_write = false) : crashes_(crash_after_each_write) {}

  /// Carries out one step and returns what was planned until nothing was left to do, as text.
  std::string run(const std::string& step);

  const Observed& world() const { return world_; }

 private:
  using Words = std::vector<std::string>;
  void change(const std::string& verb, const Words& words);
  bool change_pods(const std::string& verb, const Words& words);
  bool end_pods(const std::string& verb, const Words& words);
  bool change_progress(const std::string& verb, const Words& words);
  bool change_nodes(const std::string& verb, const Words& words);
  bool is_silent(const std::string& node) const;
  void apply_job(const Words& words);
  void apply_settings(const Words& words);
  void add_rule(const Words& words);
  std::string settle();
  void carry_out(const Plan& plan);
  /// `record`: what a Service says of its attempt.
  void apply(const Action& action, const JobStatus& record);
  void create_pod(const CreatePod& action);
  Pod& pod(const std::string& rank);

  Observed world_;
  bool crashes_ = false;
  std::optional<std::string> refusal_;
  Refusal refusal_kind_ = Refusal::denied;
  long long next_uid_ = 1;
};

struct StoryBlock {
  std::vector<std::string> comments;
  std::vector<std::string> steps;
  std::string expected;
};
std::vector<StoryBlock> parse_story(const std::string& text);
std::string to_text(const std::vector<StoryBlock>& blocks);

}  // namespace tj
