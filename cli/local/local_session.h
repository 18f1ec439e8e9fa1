// A session over the local runs: their objects in a MemoryApi, so that what reads a cluster reads
// `tj run` as well. A snapshot: who follows a run opens another one when its files have changed.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/local/run_folder.h"

namespace tj {

struct LocalSession {
  std::unique_ptr<Session> session;  // all objects are in its namespace
  std::vector<RunEntry> runs;        // whose objects it holds: one for each job's name
};

inline constexpr const char* kLocalNamespace = "default";

/// Of the runs with one job's name, the first of list_runs(): one that lives, else the newest. With
/// `job` only that one. not_found: there is none of that name.
Result<LocalSession> open_local_session(const std::string& job = "",
                                        const std::filesystem::path& registry = run_registry());

}  // namespace tj
