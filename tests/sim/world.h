// One simulated world: the API server in memory, one or two operators (the real Controller), a
// cluster, people, weather. Everything follows from the seed. A world lives in two parts:
//
//   life   steps drawn by lot, while the weather is what it is
//   drain  the weather is calm, the good thing happens to every pod; the world must come to rest,
//          and an operator that starts afresh must find nothing to do
//
// A step is one event (a person, a pod, a node, an operator, a watch, the clock does something) or
// one turn of a loop that did something: the server served a request or wrote an answer or a line,
// or an operator took one message in. The invariants are checked after each.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/local/memory_api.h"
#include "tests/sim/cluster.h"
#include "tests/sim/invariants.h"
#include "tests/sim/process.h"
#include "tests/sim/user.h"

namespace tj::sim {

struct WorldOptions {
  std::uint64_t seed = 0;
  long life_steps = 2'000;
  Bug bug = Bug::none;
  bool is_traced = false;
};

class World {
 public:
  explicit World(const WorldOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Lives to the end, or to the first broken invariant.
  void run();

  const std::optional<std::string>& violation() const { return invariants_.violation(); }
  long steps() const { return steps_; }
  const Trace& trace() const { return trace_; }

 private:
  using Event = bool (World::*)();
  struct Chance {
    int weight;
    Event event;
  };
  bool is_well() const { return !violation().has_value(); }
  void count_step(Actor actor);
  void step();
  bool turn();
  void serve();
  void draw_event();
  bool hurry_on();
  void pass_time(std::chrono::milliseconds duration);
  std::optional<SteadyTime> next() const;

  // Events; each says whether anything happened.
  bool pass_some_time();
  bool pass_much_time();
  bool move_a_pod() { return cluster_->move_a_pod(); }
  bool evict_a_pod() { return cluster_->evict_a_pod(); }
  bool change_a_node() { return cluster_->change_a_node(); }
  bool create_job() { return user_->create_job(); }
  bool delete_job() { return user_->delete_job(); }
  bool change_job() { return user_->change_job(); }
  bool delete_pod() { return user_->delete_pod(); }
  bool place_foreign_pod() { return user_->place_foreign_pod(); }
  bool break_watches();
  bool end_watches();
  bool compact();
  bool crash_operator();
  bool freeze_operator();
  bool change_second_operator();

  void start_operator(std::size_t index);
  void drain();
  void calm_down();
  bool come_to_rest(std::chrono::milliseconds limit);
  void check_second_look();
  long writes_sent() const;

  Trace trace_;
  Dice dice_;
  Weather weather_;
  Bug bug_;
  long life_steps_;
  SteadyTime now_{std::chrono::hours{1}};
  std::deque<std::function<void()>> server_turns_;
  Actor server_actor_ = Actor::collector;
  std::unique_ptr<MemoryApi> api_;
  Invariants invariants_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<User> user_;
  std::vector<std::unique_ptr<Process>> operators_;  // null: not running
  std::vector<Chance> chances_;
  std::vector<int> weights_;
  bool ends_well_ = false;
  int operators_started_ = 0;
  long steps_ = 0;
};

}  // namespace tj::sim
