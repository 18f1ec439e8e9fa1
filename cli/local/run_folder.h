// What a `tj run` leaves for other commands: its objects in `<folder>/objects.json`, as a server
// would give them, and an entry in a registry in the person's state folder, locked while the run
// lives. The logs of a pod lie beside the objects. local_session.h makes a session of all this.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "contract/result.h"
#include "operator/api/types.h"

namespace tj {

inline constexpr const char* kObjectsFile = "objects.json";
inline constexpr std::size_t kObjectsBytesMax = 256 * 1024 * 1024;  // of a file that is read
inline constexpr std::size_t kRunsMax = 100;                        // in the registry

/// {"jobs": [...], "pods": [...], "events": [...]}, each object as the API's JSON.
struct RunObjects {
  std::vector<nlohmann::json> jobs;
  std::vector<nlohmann::json> pods;
  std::vector<nlohmann::json> events;
  bool operator==(const RunObjects&) const = default;
};

/// Takes the place of the file that is there; a reader sees the one or the other.
Result<void> write_run_objects(const std::filesystem::path& folder, const RunObjects& objects);
/// not_found: there is none; invalid: it is none. What is no object with a name is left out.
Result<RunObjects> read_run_objects(const std::filesystem::path& folder);

/// Where the log of a container is: `<pod>[.attempt-N][.<init container>].log`. An empty container
/// is the main one.
std::filesystem::path run_log_file(const std::filesystem::path& folder, const std::string& pod,
                                   int attempt, const std::string& init_container = "");

/// One `tj run`, as it has registered itself.
struct RunEntry {
  std::string job;
  std::string ns;
  std::filesystem::path folder;  // absolute
  std::string host;
  int pid = 0;
  long long process_start = 0;  // in ticks since the machine's start: tells a pid that came again
  TimePoint started_at;
  bool is_alive = false;  // its tj still holds the lock
  bool operator==(const RunEntry&) const = default;
};

/// $XDG_STATE_HOME/trainingjob/runs, else ~/.local/state/trainingjob/runs; empty: neither is known.
std::filesystem::path run_registry();

/// Those of which the objects are still there: first the ones that live, the newest first.
std::vector<RunEntry> list_runs(const std::filesystem::path& registry = run_registry());
/// The first of that name in that order.
std::optional<RunEntry> find_run(const std::string& job,
                                 const std::filesystem::path& registry = run_registry());
/// The run is listed no more; its folder stays. Only for one that has ended.
void forget_run(const RunEntry& run, const std::filesystem::path& registry = run_registry());

/// This process as the `tj run` of a folder, for as long as this object lives.
class RunRegistration {
 public:
  /// Fills in host, process and time. conflict: another run has the folder, and lives.
  static Result<RunRegistration> make(RunEntry run,
                                      const std::filesystem::path& registry = run_registry());
  RunRegistration(RunRegistration&& other) noexcept;
  RunRegistration& operator=(RunRegistration&& other) noexcept;
  RunRegistration(const RunRegistration&) = delete;
  RunRegistration& operator=(const RunRegistration&) = delete;
  ~RunRegistration();

 private:
  explicit RunRegistration(int fd) : fd_(fd) {}
  int fd_ = -1;
};

/// SIGTERM to the run's own process and to no other, then waits until it has ended. not_found: it
/// has ended already; forbidden: it is not a process of this machine; timeout: it still runs.
Result<void> end_run(const RunEntry& run, std::chrono::seconds wait_max,
                     const std::filesystem::path& registry = run_registry());

}  // namespace tj
