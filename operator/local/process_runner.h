// Plays scheduler and kubelet for MemoryApi: each pod becomes a local process, and its life is
// written into the pod's status as a kubelet would. Everything happens on the loop's thread, which
// must be the program's main thread. Init containers run first, in order; then the template's first
// container. Other containers are not run: on_note says so.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/local/child_process.h"
#include "operator/local/memory_api.h"
#include "operator/local/pod_command.h"
#include "operator/local/pod_status.h"

namespace tj {

struct PodName {
  std::string name;
  int worker_index = -1;  // -1: no worker of a job
  bool operator==(const PodName&) const = default;
};

/// What became of a pod, kept after the pod has gone.
struct PodReport {
  PodName pod;
  PodPhase phase = PodPhase::pending;
  bool stopped = false;  // its deletion was asked for while it ran
  std::optional<ContainerExit> exit;
  std::optional<TimePoint> started_at;
  std::filesystem::path log_file;
};

struct RunnerOptions {
  std::filesystem::path
      run_folder;  // absolute; logs, volumes and last words; made if it is missing
  std::filesystem::path
      manifest_folder;  // the working folder of containers whose own does not exist here
  std::string node_name;
  std::vector<std::string> path_folders;
  std::vector<EnvVar> machine_env;
  std::optional<std::chrono::seconds> grace;  // in place of terminationGracePeriodSeconds
  ObjectStore::Clock now;
  std::function<void(const PodName&, std::string_view line)> on_line;
  std::function<void(const PodName&, const std::string& note)> on_note;
  std::function<void()> on_change;  // something ended or changed; `idle` may have turned
};

class ProcessRunner {
 public:
  ProcessRunner(boost::asio::io_context& loop, MemoryApi& api, RunnerOptions options);
  /// Kills whatever still runs.
  ~ProcessRunner();
  ProcessRunner(const ProcessRunner&) = delete;
  ProcessRunner& operator=(const ProcessRunner&) = delete;

  /// Nothing runs.
  bool idle() const { return runs_.empty(); }
  /// SIGKILL to everything, now.
  void kill_all();
  /// By worker index, the latest run of each pod.
  std::vector<PodReport> reports() const;

 private:
  struct Run;
  using RunPtr = std::shared_ptr<Run>;

  void on_pod(const ObjectChange& change);
  void accept(const nlohmann::json& pod);
  void set_volumes_aside(const std::string& pod_name);
  void start_next(const RunPtr& run);
  Result<void> start_container(const RunPtr& run, const nlohmann::json& container,
                               ContainerRun& state);
  Result<ProcessSpec> prepare(Run& run, const nlohmann::json& container);
  Result<void> open_log(Run& run, const std::string& container_name, bool is_main);
  void container_ended(const RunPtr& run, const ChildEnd& end);
  void fail_to_start(const RunPtr& run, const Error& error);
  void finish(const RunPtr& run);
  void stop(const RunPtr& run, std::chrono::seconds grace);
  void write_status(const Run& run);
  Result<int> master_port(const nlohmann::json& pod);

  boost::asio::io_context& loop_;
  MemoryApi& api_;
  RunnerOptions options_;
  std::map<std::string, RunPtr> runs_;        // by pod uid; ended runs leave
  std::map<std::string, PodReport> reports_;  // by pod name
  std::map<std::string, int> master_ports_;   // by job uid and attempt
  std::unique_ptr<WatchStream> pods_;
};

}  // namespace tj
