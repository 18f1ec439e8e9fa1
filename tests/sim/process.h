// One operator process in a simulated world: the real Controller on its own loop and clock, behind
// its own link. Destroying it is its death.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>

#include "operator/loop/controller.h"
#include "operator/loop/metrics.h"
#include "tests/sim/link.h"
#include "tests/sim/rank0.h"
#include "tests/sim/sabotage.h"

namespace tj::sim {

class Process {
 public:
  struct Clock {
    const SteadyTime& now;
    std::chrono::milliseconds skew{0};  // of its wall clock
  };

  Process(LinkWorld world, std::string name, std::chrono::milliseconds skew, Bug bug);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// It has something to do now.
  bool is_ready() const { return !is_frozen() && (link_.is_ready() || is_due()); }
  /// One message is taken in, with all that follows from it inside the process.
  void turn();
  std::optional<SteadyTime> next() const;
  void freeze_until(SteadyTime time) { frozen_until_ = time; }
  bool is_frozen() const { return frozen_until_ > now_; }

  /// It went on and on after a single message.
  bool is_spinning() const { return is_spinning_; }
  Link& link() { return link_; }
  const std::string& name() const { return name_; }

 private:
  bool is_due() const;
  void run();

  const SteadyTime& now_;
  std::string name_;
  SteadyTime frozen_until_;
  bool is_spinning_ = false;
  boost::asio::io_context loop_;
  Link link_;
  std::unique_ptr<KubeApi> saboteur_;  // null: the code is as it should be
  Rank0 rank0_;
  Metrics metrics_;
  std::unique_ptr<Controller> controller_;
};

/// The wall clock of a world that knows the time.
TimePoint wall_time(SteadyTime now);

}  // namespace tj::sim
