#include "cli/jobs/place.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>

namespace tj {
namespace {

/// Changes with any of the runs.
std::string state_of(const std::vector<RunEntry>& runs) {
  std::string state;
  for (const RunEntry& run : runs) {
    std::error_code failure;
    const auto written = std::filesystem::last_write_time(run.folder / kObjectsFile, failure);
    state += run.folder.string() + (run.is_alive ? " lives " : " has ended ") +
             std::to_string(written.time_since_epoch().count()) + "\n";
  }
  return state;
}

}  // namespace

bool is_without_cluster(const Error& error) {
  return error.code == Code::not_found && error.subject == "kubeconfig";
}

void add_place_flags(CLI::App& command, PlaceOptions& options) {
  add_session_flags(command, options.session);
  command.add_flag("--local", options.local,
                   "the runs of tj run on this machine (so too where no cluster is configured)");
}

Result<std::unique_ptr<Place>> Place::open(const PlaceOptions& options) {
  if (options.local) return local(run_registry());
  auto session = Session::open(options.session);
  if (session) return std::make_unique<Place>(*std::move(session));
  if (!is_without_cluster(session.error())) {
    Error wrong = session.error();
    wrong.code = Code::invalid;  // a kubeconfig is input; it is no job that isn't there
    return wrong;
  }
  std::fputs("no cluster is configured (kubeconfig): looking at the local runs\n", stderr);
  return local(run_registry());
}

Result<std::unique_ptr<Place>> Place::local(std::filesystem::path registry) {
  std::unique_ptr<Place> place(new Place);
  place->is_local_ = true;
  place->registry_ = std::move(registry);
  if (const auto read = place->refresh(); !read) return read.error();
  return place;
}

const RunEntry* Place::run_of(const std::string& job) const {
  const auto found =
      std::find_if(runs_.begin(), runs_.end(), [&](const RunEntry& run) { return run.job == job; });
  return found == runs_.end() ? nullptr : &*found;
}

bool Place::has_lost_its_process(const std::string& job) const {
  const RunEntry* run = run_of(job);
  return run != nullptr && !run->is_alive;
}

Result<void> Place::refresh() {
  if (!is_local_) return {};
  const std::string now = state_of(list_runs(registry_));
  if (session_ && now == seen_) return {};
  seen_ = now;
  auto opened = open_local_session("", registry_);
  if (!opened) return opened.error();
  session_ = std::move(opened->session);
  runs_ = std::move(opened->runs);
  return {};
}

}  // namespace tj
