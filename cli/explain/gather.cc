#include "cli/explain/gather.h"

#include <utility>

#include "cli/jobs/requests.h"

namespace tj {
namespace {

using nlohmann::json;

/// What may not be read is named, and left out.
std::vector<json> found_in(Result<std::vector<json>> listed, const char* what,
                           GatheredForJob& into) {
  if (listed) return *std::move(listed);
  into.missing.push_back(std::string(what) + ": " + describe(listed.error()));
  return {};
}

}  // namespace

Result<GatheredForJob> gather(Session& session, const std::string& job) {
  auto object = get_job(session, job);
  if (!object) return object.error();
  GatheredForJob all;
  all.gathered.pods = found_in(pods_of(session, *object), "pods", all);
  all.gathered.events = found_in(events_of(session, *object), "events", all);
  all.gathered.nodes = found_in(session.list({.resource = Resource::nodes}), "nodes", all);
  all.gathered.job = *std::move(object);
  return all;
}

}  // namespace tj
