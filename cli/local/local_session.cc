#include "cli/local/local_session.h"

#include <set>
#include <utility>

#include "operator/api/read.h"
#include "operator/local/memory_api.h"

namespace tj {
namespace {

/// Of the uids that this store would give: none that a `tj run` has given.
constexpr const char* kUidPrefix = "ffffffff-ffff-4fff-bfff-";

TimePoint wall_clock() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// Jobs come first: a pod without its owner would be collected.
void restore(ObjectStore& store, RunObjects objects) {
  const auto put = [&store](Resource resource, std::vector<nlohmann::json>& all) {
    for (auto& object : all) {
      nlohmann::json& meta = object["metadata"];
      if (read::string_at(meta, "uid").starts_with(kUidPrefix)) continue;
      meta["namespace"] = kLocalNamespace;  // whatever the manifest says: there is no other here
      [[maybe_unused]] const auto stored = store.restore(resource, std::move(object));
    }
  };
  put(Resource::training_jobs, objects.jobs);
  put(Resource::pods, objects.pods);
  put(Resource::events, objects.events);
}

}  // namespace

Result<LocalSession> open_local_session(const std::string& job,
                                        const std::filesystem::path& registry) {
  LocalSession local;
  MemoryApi* memory = nullptr;
  local.session = std::make_unique<Session>(
      [&memory](Session::Post post) {
        auto api = std::make_unique<MemoryApi>(std::move(post), wall_clock,
                                               ObjectStoreOptions{.uid_prefix = kUidPrefix});
        memory = api.get();
        return api;
      },
      kLocalNamespace);
  std::set<std::string> known;
  for (RunEntry& run : list_runs(registry)) {
    if ((!job.empty() && run.job != job) || known.contains(run.job)) continue;
    auto objects = read_run_objects(run.folder);
    if (!objects) continue;  // it has gone since, or is none: as if it were not there
    restore(memory->objects(), *std::move(objects));
    known.insert(run.job);
    local.runs.push_back(std::move(run));
  }
  if (!job.empty() && local.runs.empty())
    return Error{Code::not_found, "there is no local run of this name", job, {}};
  return local;
}

}  // namespace tj
