// A small cluster in one thread for the loop's tests: the API server in memory, a kubelet that does
// what it is told, time that is turned by hand. Nothing sleeps.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/local/memory_api.h"
#include "operator/loop/controller.h"
#include "operator/loop/metrics.h"
#include "operator/loop/progress_source.h"
#include "tests/sanitized.h"

namespace tj {

/// What the pods of a story do when they are left alone.
enum class Kubelet { idle, starts_pods, runs_pods_to_the_end };

/// Rank 0 of each job, as the operator reads it: nobody listens there until a story says so. Asked
/// only where ControllerOptions name it.
class FakeProgress final : public ProgressSource {
 public:
  using Answer = std::function<PollAnswer()>;
  explicit FakeProgress(boost::asio::io_context& loop) : loop_(loop) {}
  void fetch(const ProgressTarget& target, Done done) override;
  /// From now on rank 0 of this job answers so.
  void answer(const std::string& job, Answer answer);
  void say(const std::string& job, const Progress& document);
  void fail(const std::string& job, PollResult result);

  int asked = 0;
  ProgressTarget last_target;

 private:
  boost::asio::io_context& loop_;
  std::map<std::string, Answer> answers_;  // by address
};

/// Who waits in the world's time: when next, and what to do then.
struct Sleeper {
  std::function<std::optional<std::chrono::steady_clock::time_point>()> next_wake;
  std::function<void()> wake;
};

class World {
 public:
  World();
  ~World();

  MemoryApi& api() { return *api_; }
  ObjectStore& objects() { return api_->objects(); }
  Controller& controller() { return *controller_; }
  Metrics& metrics() { return metrics_; }
  FakeProgress& progress() { return progress_; }

  boost::asio::io_context& loop() { return loop_; }
  std::chrono::steady_clock::time_point steady_now() const { return steady_; }
  /// Somebody else who waits in the world's time, until `leave`.
  void attend(const void* who, Sleeper sleeper) { sleepers_[who] = std::move(sleeper); }
  void leave(const void* who) { sleepers_.erase(who); }

  void start_controller();
  void stop_controller() { controller_.reset(); }
  void restart_controller();
  /// Destroys and starts the controller in the next turn of the loop, outside any callback.
  void restart_soon() { restart_is_due_ = true; }

  /// Of the controllers that are started from now on.
  ControllerOptions& options() { return options_; }

  /// `spec` is what else the job's spec says: {"runPolicy": {...}}. Restarts don't wait, unless it
  /// says so.
  void create_job(const std::string& name, int worker_count,
                  nlohmann::json spec = nlohmann::json::object(),
                  const std::string& ns = "default");
  /// Pods that are asked to go stay, for as long as this is so.
  void keep_terminating_pods(bool keep) {
    keeps_terminating_pods_ = keep;
    kubelet_rests_at_.reset();
  }
  void set_kubelet(Kubelet kubelet) {
    kubelet_ = kubelet;
    kubelet_rests_at_.reset();
  }
  void add_node(const std::string& name);
  /// What its kubelet does every few minutes when nothing has changed.
  void node_heartbeat(const std::string& name);
  /// Its kubelet is not heard of any more, and its pods don't end.
  void silence_node(const std::string& name);
  /// The clocks of nodes and of the node controller are so much ahead of the operator's.
  void set_cluster_skew(std::chrono::seconds skew) { cluster_skew_ = skew; }
  /// The scheduler's part.
  void place_pod(const std::string& name, const std::string& node);
  void start_pod(const std::string& name);
  void end_pod(const std::string& name, int exit_code);

  /// Runs until nothing is left to do now; time stands still.
  void settle();
  /// Settles, and turns the time to the next wait, again and again for that long.
  void pass(std::chrono::milliseconds duration);
  /// The clock goes on, and nobody has been woken yet: the machine slept.
  void oversleep(std::chrono::milliseconds duration) { steady_ += duration; }
  /// Like `pass`, up to the moment when `reached` holds; false if it never does.
  bool pass_until(const std::function<bool()>& reached,
                  std::chrono::milliseconds limit = std::chrono::minutes{10});

  nlohmann::json job(const std::string& name) { return get(Resource::training_jobs, name); }
  nlohmann::json get(Resource resource, const std::string& name);  // null: not there
  std::string phase(const std::string& name);
  std::string reason(const std::string& name);
  std::vector<std::string> pod_names();
  std::vector<std::string> event_reasons();
  /// Lines of the request log that begin so: "create pods".
  int requests(const std::string& prefix) const;
  /// Requests that change something.
  int writes() const;

 private:
  void kubelet_step();
  std::optional<std::chrono::steady_clock::time_point> next_wake() const;
  void wake();
  void set_node_ready(const std::string& name, const char* status);
  TimePoint wall_now() const;

  std::chrono::steady_clock::time_point steady_{std::chrono::hours{1}};
  boost::asio::io_context loop_;
  std::unique_ptr<MemoryApi> api_;
  Metrics metrics_;
  FakeProgress progress_{loop_};
  std::unique_ptr<Controller> controller_;
  std::map<const void*, Sleeper> sleepers_;
  ControllerOptions options_;
  Kubelet kubelet_ = Kubelet::idle;
  std::optional<std::uint64_t> kubelet_rests_at_;  // of this version it has nothing to change
  std::set<std::string> silent_nodes_;
  int heartbeats_ = 0;
  std::chrono::seconds cluster_skew_{0};
  bool keeps_terminating_pods_ = false;
  bool restart_is_due_ = false;
};

}  // namespace tj
