// The people of a simulated world: they submit jobs of every kind, change their minds, delete jobs
// and pods, use a name again, and put objects of their own in the way.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/local/object_store.h"
#include "tests/sim/dice.h"
#include "tests/sim/mirror.h"
#include "tests/sim/trace.h"

namespace tj::sim {

class User {
 public:
  struct Parts {
    ObjectStore& store;
    const Mirror& mirror;
    Dice& dice;
    Trace& trace;
  };
  explicit User(Parts parts) : parts_(parts) {}

  // Each says whether anything happened.
  bool create_job();
  bool delete_job();
  bool change_job();
  bool delete_pod();
  /// A pod or a Service with a name that a job needs comes or goes.
  bool place_foreign_pod();

 private:
  nlohmann::json draw_spec();
  nlohmann::json draw_template();
  void draw_policies(nlohmann::json& spec);
  nlohmann::json draw_change(const JobFacts& job);
  const JobFacts* any_job();

  Parts parts_;
  int templates_drawn_ = 0;
};

}  // namespace tj::sim
