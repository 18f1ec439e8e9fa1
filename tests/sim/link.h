// One operator's connection to the API server: requests, answers and watch lines travel through it,
// each in its own time, and some get lost. A stream keeps its order; everything else overtakes as
// it likes. What was sent may take effect after its sender gave it up, or died.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/loop/work_queue.h"
#include "tests/sim/dice.h"
#include "tests/sim/trace.h"
#include "tests/sim/weather.h"

namespace tj::sim {

/// What a link shares with the world around it.
struct LinkWorld {
  KubeApi& server;
  Dice& dice;
  const Weather& weather;
  Trace& trace;
  const SteadyTime& now;
};

class Link final : public KubeApi {
 public:
  Link(LinkWorld world, std::string name) : world_(world), name_(std::move(name)) {}
  /// The operator dies. Of what it had just sent some is on its way, some is lost.
  ~Link() override;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void send(Request request, Done done) override;
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override;

  /// Something may travel now.
  bool is_ready() const;
  /// One message of those that may travel now does.
  void turn();
  /// When the next thing happens by itself: a slow message arrives, a deadline passes.
  std::optional<SteadyTime> next() const;
  /// No more delays for what is under way.
  void hurry();
  /// Every stream breaks; what it had not delivered is lost with it.
  void break_streams();

  long writes_sent() const { return writes_sent_; }
  long requests_sent() const { return requests_sent_; }
  /// A creation for a job whose end this operator had been told; empty: none.
  const std::string& late_creation() const { return late_creation_; }

 private:
  struct Stream;
  class StreamHandle;
  struct Message {
    SteadyTime at;
    std::shared_ptr<Stream> stream;  // of a watch line
    std::function<void()> arrive;
    bool is_request = false;
  };
  struct Pending {
    Done done;
    SteadyTime deadline;
    std::string what;
  };
  void post(Message message);
  /// Requests without an answer at their deadline time out.
  void expire();
  void forward(unsigned long long id, Request request);
  void answer(unsigned long long id, Result<std::string> result);
  void settle(unsigned long long id, Result<std::string> result);
  void deliver_line(const std::shared_ptr<Stream>& stream, const std::string& line);
  void watch_for_late_creation(const Request& request);
  std::vector<std::size_t> arriving() const;
  Error refusal();

  LinkWorld world_;
  std::string name_;
  std::vector<Message> messages_;
  std::map<unsigned long long, Pending> pending_;  // by id
  unsigned long long ids_given_ = 0;
  std::vector<std::weak_ptr<Stream>> streams_;
  std::set<std::string> mourned_;  // uids of jobs that the operator knows to be deleted
  std::string late_creation_;
  long writes_sent_ = 0;
  long requests_sent_ = 0;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace tj::sim
