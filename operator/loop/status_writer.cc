#include "operator/loop/status_writer.h"

#include <nlohmann/json.hpp>

#include "operator/api/json.h"
#include "operator/loop/status_pace.h"

namespace tj {
namespace {

StatusOutcome failure(const Error& error) {
  return {.result = StatusResult::failed,
          .retry_after = error.retry_after.value_or(std::chrono::milliseconds{0}),
          .error = "status: " + describe(error)};
}

}  // namespace

void StatusWriter::write(const TrainingJob& job, const JobStatus& status, Done done) {
  Request request{.verb = Verb::patch_status,
                  .resource = Resource::training_jobs,
                  .ns = job.meta.ns,
                  .name = job.meta.name,
                  .body = status_patch(job, status).dump()};
  api_.send(std::move(request), [this, job, status, done](Result<std::string> answer) {
    if (answer) {
      view_.wrote(Resource::training_jobs, *answer);
      return done({.result = StatusResult::written});
    }
    switch (answer.error().code) {
      case Code::not_found: return done({.result = StatusResult::job_gone});
      case Code::conflict:
      case Code::timeout: return look_again(job, status, answer.error(), done);
      default: return done(failure(answer.error()));
    }
  });
}

/// Ours may be the write that came first, its answer lost: then it is done.
void StatusWriter::look_again(const TrainingJob& job, const JobStatus& status, const Error& why,
                              Done done) {
  Request request{.verb = Verb::get,
                  .resource = Resource::training_jobs,
                  .ns = job.meta.ns,
                  .name = job.meta.name};
  api_.send(std::move(request), [this, job, status, why, done](Result<std::string> answer) {
    if (!answer) {
      if (answer.error().code == Code::not_found) return done({.result = StatusResult::job_gone});
      return done(failure(answer.error()));
    }
    view_.wrote(Resource::training_jobs, *answer);
    const auto object = parse_object(*answer);
    const auto live = object ? job_from_json(*object) : Error{Code::internal, "no object", "", {}};
    // Of another generation it is not the end of it: what the view has learnt here is no news in
    // the watch any more.
    const bool is_done = live && live->meta.uid == job.meta.uid &&
                         live->meta.generation == job.meta.generation &&
                         is_same_status(live->status, status);
    if (is_done) return done({.result = StatusResult::written});
    done({.result = StatusResult::outdated, .error = "status: " + describe(why)});
  });
}

}  // namespace tj
