#include "trainer/train/saving.h"

#include <torch/types.h>

#include <mutex>
#include <utility>

#include "trainer/checkpoint/file_plan.h"
#include "trainer/checkpoint/interference.h"
#include "trainer/checkpoint/save_job.h"
#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/agreement.h"
#include "trainer/process/lines.h"

namespace tj::trainer {
namespace {
using std::chrono::steady_clock;

/// Null on the CPU.
std::unique_ptr<DeviceToHost> copies_from(const StateTensors& state) {
  for (const auto& named : state.model) {
    const auto& held = named.tensor.defined() ? named.tensor : named.whole;
    if (held.defined() && !held.is_cpu()) return std::make_unique<DeviceToHost>(held.device());
  }
  return nullptr;
}

}  // namespace

class Saving::Impl {
 public:
  Impl(Communicator& communicator, SavingOptions options, const StateTensors& state)
      : comm_(communicator),
        options_(std::move(options)),
        copies_(copies_from(state)),
        all_groups_(state_groups(state, communicator, options_.is_shared, copies_.get())),
        groups_(without({kRanksStem, kRoundStem})),  // which not every save has
        own_(options_.retention.keep) {
    if (options_.begun_at) own_.add(*options_.begun_at);
    if (!options_.saves_midway || !is_writer()) return;
    staging_.prepare(bytes_of_writer(groups_, plan_files(groups_, writers()), comm_.rank()));
  }

  void begin(const Manifest& manifest, const GroupStems& left_out) {
    const auto begun = steady_clock::now();
    const bool may_begin = !job || end_previous(manifest.step);
    groups_ = without(left_out);
    if (copies_) copies_->follow();
    if (is_in_parts(groups_)) {
      if (!all_may_begin(may_begin, manifest.step)) return;
      if (!is_writer()) return send_parts(groups_, plan_files(groups_, writers()));
    }
    if (!may_begin || !is_writer()) return;
    step_ = manifest.step;
    own_.add(step_);
    job = std::make_unique<SaveJob>(
        SaveJob::Inputs{.order = {.out = options_.out,
                                  .run_id = options_.run_id,
                                  .writer = comm_.rank(),
                                  .writers = writers(),
                                  .manifest = manifest,
                                  .config_json = options_.config_json,
                                  .more_files = options_.more_files,
                                  .retention = options_.retention,
                                  .own = own_.names(),
                                  .claim = options_.claim,
                                  .others_max = options_.others_max},
                        .groups = groups_,
                        .staging = staging_,
                        .clock = options_.clock,
                        .on_committed = [this](const SaveReport& report) { tell(report); }});
    job->add_stall(steady_clock::now() - begun);
    interference_.save_began(manifest.step);
  }

  bool has_failed() const { return refused_ || (job && job->has_failed()); }

  std::optional<Failure> finish() {
    std::optional<Failure> mine = std::exchange(refused_, std::nullopt);
    const auto note = [&](const Result<void>& finished) {
      if (!finished) mine = save_failure(step_, finished.error());
    };
    if (mine) return agree(comm_, mine);  // on all ranks, and there is no job
    // In two turns: rank 0 must not wait for the part of a rank that can't write.
    if (job) note(job->finish_own_part());
    if (auto failure = agree(comm_, mine)) {
      if (job) job->abandon();
      return failure;
    }
    if (job) note(job->finish());
    return agree(comm_, mine);
  }

  void step_took(double seconds) {
    if (const auto report = interference_.add(seconds)) options_.reporter.interfered(*report);
  }

  std::string last_path() {
    const std::scoped_lock lock(mutex_);
    return last_path_;
  }

  std::unique_ptr<SaveJob> job;

 private:
  std::vector<StateGroup> without(const GroupStems& left_out) const {
    std::vector<StateGroup> groups;
    for (const auto& group : all_groups_)
      if (!left_out.contains(group.stem)) groups.push_back(group);
    return groups;
  }

  int writers() const { return options_.is_shared ? comm_.world_size() : 1; }
  bool is_writer() const { return comm_.rank() == 0 || options_.is_shared; }

  /// Collective: a rank that can't take part says so before parts are sent around. A job that has
  /// failed tells of itself with the next step.
  bool all_may_begin(bool mine, std::int64_t step) {
    Result<std::span<std::byte>> memory{std::span<std::byte>()};
    if (mine && is_writer())
      memory =
          staging_.reserve(bytes_of_writer(groups_, plan_files(groups_, writers()), comm_.rank()));
    const auto counts = sum_over_ranks(comm_, {mine ? 0.0 : 1.0, memory ? 0.0 : 1.0});
    if (counts[0] > 0) return false;
    if (counts[1] == 0) return true;
    job.reset();
    refused_ =
        agree(comm_, memory ? std::nullopt : std::optional(save_failure(step, memory.error())));
    return false;
  }

  /// One save at a time. False when the earlier one has failed: then there is no next.
  bool end_previous(std::int64_t step) {
    if (!job->is_over() && comm_.rank() == 0)
      say("the save of step " + std::to_string(step) + " waits: step " + std::to_string(step_) +
          " is still being written");
    return job->finish().ok();
  }

  /// Called by whoever finishes the job.
  void tell(const SaveReport& report) {
    {
      const std::scoped_lock lock(mutex_);
      last_path_ = report.path.string();
    }
    options_.reporter.saved(report);
  }

  Communicator& comm_;
  SavingOptions options_;
  std::unique_ptr<DeviceToHost> copies_;
  std::vector<StateGroup> all_groups_;
  std::vector<StateGroup> groups_;  // of the save in flight
  OwnCheckpoints own_;
  StagingBuffer staging_;
  Interference interference_;
  std::int64_t step_ = 0;           // of the job
  std::optional<Failure> refused_;  // a save that did not begin; the same on all ranks
  std::mutex mutex_;                // guards the one below
  std::string last_path_;
};

Saving::Saving(Communicator& communicator, SavingOptions options, const StateTensors& state)
    : impl_(std::make_unique<Impl>(communicator, std::move(options), state)) {}
Saving::~Saving() { impl_->job.reset(); }  // it uses what it would outlive

void Saving::begin(const Manifest& manifest, const GroupStems& left_out) {
  impl_->begin(manifest, left_out);
}
void Saving::wait_until_copied() {
  if (impl_->job) impl_->job->wait_until_copied();
}
bool Saving::has_failed() const { return impl_->has_failed(); }
std::optional<Failure> Saving::finish() { return impl_->finish(); }
void Saving::step_took(double seconds) { impl_->step_took(seconds); }
std::string Saving::last_path() const { return impl_->last_path(); }

Failure save_failure(std::int64_t step, const Error& error) {
  return out_failure(error, "SaveFailed",
                     "step " + std::to_string(step) + " could not be saved: " + describe(error));
}

}  // namespace tj::trainer
