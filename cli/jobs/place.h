// Where a person's jobs are: a cluster, or the local runs. Both are a session; a local one is read
// anew by refresh().
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/local/local_session.h"

namespace tj {

struct PlaceOptions {
  SessionOptions session;
  bool local = false;
};

/// What Session::open() says where no cluster is configured at all.
bool is_without_cluster(const Error& error);

/// --local and the flags of a session. `options` must live as long as the program's options.
void add_place_flags(CLI::App& command, PlaceOptions& options);

class Place {
 public:
  /// The local runs with --local, and where no cluster is configured, which standard error says.
  static Result<std::unique_ptr<Place>> open(const PlaceOptions& options);
  /// The local runs of a registry.
  static Result<std::unique_ptr<Place>> local(std::filesystem::path registry);
  /// A cluster, or a test's.
  explicit Place(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  Session& session() { return *session_; }
  const std::string& ns() const { return session_->ns(); }
  bool is_local() const { return is_local_; }
  const std::filesystem::path& registry() const { return registry_; }
  /// The local run of a job; null in a cluster.
  const RunEntry* run_of(const std::string& job) const;
  /// A local run that no process is behind any more: what its job says will never change.
  bool has_lost_its_process(const std::string& job) const;
  /// Reads local runs anew. Does nothing to a cluster, which is asked each time.
  Result<void> refresh();

 private:
  Place() = default;
  std::unique_ptr<Session> session_;
  bool is_local_ = false;
  std::filesystem::path registry_;
  std::vector<RunEntry> runs_;
  std::string seen_;  // which files were read, and when they were written
};

}  // namespace tj
