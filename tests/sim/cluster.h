// The rest of the cluster: a scheduler, nodes that fall silent and come back, kubelets with their
// containers. What happens to a pod next is drawn; in a calm world the good thing happens.
#pragma once
#include <string>
#include <vector>

#include "operator/local/object_store.h"
#include "operator/loop/work_queue.h"
#include "tests/sim/dice.h"
#include "tests/sim/mirror.h"
#include "tests/sim/trace.h"

namespace tj::sim {

class Cluster {
 public:
  struct Parts {
    ObjectStore& store;
    const Mirror& mirror;
    Dice& dice;
    Trace& trace;
    const SteadyTime& now;
  };
  explicit Cluster(Parts parts);

  // Each says whether anything happened.
  bool move_a_pod();
  bool evict_a_pod();
  bool change_a_node();
  /// The good thing happens to every pod that can move: it is bound, starts, goes when it must; if
  /// `ends_well`, a gang that runs as a whole ends with 0.
  bool settle(bool ends_well);
  /// All nodes come back, or those that are silent stay so while another is left.
  void mend_nodes(bool all);

 private:
  struct Node {
    std::string name;
    bool is_silent = false;
  };
  void report_node(const Node& node);
  bool move(const PodFacts& pod);
  bool settle(const PodFacts& pod, bool ends_well);
  void schedule(const PodFacts& pod);
  void start(const PodFacts& pod);
  void trouble_at_start(const PodFacts& pod);
  void end(const PodFacts& pod, int exit_code, bool out_of_memory);
  void end_somehow(const PodFacts& pod);
  void finish(const PodFacts& pod);
  void bind(const PodFacts& pod);
  void report(const PodFacts& pod, const nlohmann::json& status);
  const PodFacts* any_pod();
  bool is_reachable(const PodFacts& pod) const;
  bool runs_as_a_whole(const std::string& job_uid) const;
  std::string time() const;

  Parts parts_;
  std::vector<Node> nodes_;
};

}  // namespace tj::sim
