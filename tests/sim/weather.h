// How rough a world is: what may go wrong, and how often, in a thousand. Each world draws its own
// weather, most kinds of trouble absent or rare, so that some worlds meet a single kind in force
// (swarm testing: Groce et al., ISSTA 2012).
#pragma once
#include "tests/sim/dice.h"

namespace tj::sim {

struct Weather {
  // Of requests.
  int refusal = 0;      // answered 409, 410, 429, 500 without effect
  int lost_answer = 0;  // took effect, an error comes instead
  int slow = 0;         // a request, an answer or a line takes seconds, perhaps beyond its deadline
  // Of watches.
  int lost_line = 0;  // the stream goes on without it
  int double_line = 0;
  // Of events, as weights beside the ordinary ones.
  int broken_watches = 0;
  int compactions = 0;
  int crashes = 0;
  int freezes = 0;  // an operator stands still and wakes up in another world
  int second_operator = 0;
  int skew_seconds_max = 0;
  int node_losses = 0;
  int evictions = 0;
  int pod_deletions = 0;
  int job_deletions = 0;
  int spec_changes = 0;
  int foreign_pods = 0;
  int hangs = 0;  // of the answers of rank 0, in a hundred: the run stands still, or says nothing

  static Weather draw(Dice& dice);
  static Weather calm() { return {}; }
};

inline Weather Weather::draw(Dice& dice) {
  const auto some = [&dice](int little, int much) {
    const int roll = dice.below(4);
    return roll == 0 ? much : (roll == 1 ? little : 0);
  };
  return {.refusal = some(10, 150),
          .lost_answer = some(10, 150),
          .slow = some(5, 60),
          .lost_line = some(2, 50),
          .double_line = some(20, 300),
          .broken_watches = some(2, 15),
          .compactions = some(1, 8),
          .crashes = some(2, 20),
          .freezes = some(2, 20),
          .second_operator = some(1, 4),
          .skew_seconds_max = some(2, 120),
          .node_losses = some(1, 6),
          .evictions = some(1, 6),
          .pod_deletions = some(2, 10),
          .job_deletions = some(2, 8),
          .spec_changes = some(4, 15),
          .foreign_pods = some(1, 3),
          .hangs = some(5, 60)};
}

}  // namespace tj::sim
