#include "operator/loop/leader_elector.h"

#include <spdlog/spdlog.h>

#include "operator/loop/log_text.h"

namespace tj {

namespace {
constexpr const char* kWaitSlot = "lease wait";
constexpr const char* kDeadlineSlot = "lease deadline";
}  // namespace

LeaderElector::LeaderElector(KubeApi& api, Alarm& alarm, LeaseTarget target, WallClock wall,
                             ElectionEvents events)
    : api_(api),
      alarm_(alarm),
      target_(std::move(target)),
      wall_(std::move(wall)),
      events_(std::move(events)),
      lease_(target_) {}

void LeaderElector::start() {
  if (phase_ != Phase::idle) return;
  phase_ = Phase::running;
  take(lease_.start(alarm_.now()));
}

void LeaderElector::release() {
  if (phase_ == Phase::releasing || phase_ == Phase::over) return;
  phase_ = Phase::releasing;
  alarm_.cancel(kWaitSlot);
  alarm_.cancel(kDeadlineSlot);
  if (api_.in_flight() == 0) take(std::nullopt);  // else when the answer has come
}

void LeaderElector::take(std::optional<LeaseCommand> command) {
  if (phase_ == Phase::over) return;
  if (phase_ == Phase::releasing) {
    phase_ = Phase::over;
    command = lease_.release(moment());
  } else if (lease_.lost_reason()) {
    phase_ = Phase::over;
    alarm_.cancel(kWaitSlot);
    events_.on_lost("the lease " + name() + " is lost: " + *lease_.lost_reason());
  } else if (const auto until = lease_.leads_until()) {
    lead(*until);
  }
  if (!command) return;
  std::visit([this](const auto& next) { carry_out(next); }, *command);
}

void LeaderElector::lead(SteadyTime until) {
  alarm_.set(kDeadlineSlot, until, [this] {
    lease_.check(alarm_.now());
    take(std::nullopt);
  });
  if (std::exchange(is_leading_, true)) return;
  spdlog::info("msg=leading lease={} identity={}", name(), target_.identity);
  events_.on_leading();
}

void LeaderElector::carry_out(const LookAtLease&) {
  Request get{.verb = Verb::get, .resource = Resource::leases, .name = target_.name};
  send(std::move(get), [this](const Result<std::string>& answer) {
    take(lease_.on_look(answer, moment()));
    note_holder();
  });
}

void LeaderElector::carry_out(const WriteLease& write) {
  Request request{.verb = write.is_new ? Verb::create : Verb::replace,
                  .resource = Resource::leases,
                  .name = write.is_new ? "" : target_.name,
                  .body = write.body};
  send(std::move(request),
       [this](const Result<std::string>& answer) { take(lease_.on_written(answer, moment())); });
}

void LeaderElector::carry_out(const WaitForLease& wait) {
  alarm_.set_after(kWaitSlot, wait.delay, [this] { take(lease_.on_waited(moment())); });
}

void LeaderElector::send(Request request, std::function<void(const Result<std::string>&)> done) {
  request.ns = target_.ns;
  request.deadline = kLeaseRequestDeadline;
  api_.send(std::move(request), [this, done = std::move(done)](const Result<std::string>& answer) {
    note_problem(answer);
    done(answer);
  });
}

void LeaderElector::note_problem(const Result<std::string>& answer) {
  const bool is_normal =
      answer || answer.error().code == Code::not_found || answer.error().code == Code::conflict;
  if (is_normal) {
    problem_.reset();
    return problem_log_.reset();
  }
  problem_ = answer.error();
  if (!problem_log_.opens(problem_->message, alarm_.now())) return;
  spdlog::error("lease={} code={} msg=\"can't reach the lease, will try again\" error={}", name(),
                to_string(problem_->code), log_value(describe(*problem_)));
}

void LeaderElector::note_holder() {
  const std::string& holder = lease_.holder();
  const bool is_other = !holder.empty() && holder != target_.identity;
  if (!is_other || holder == logged_holder_) return;
  logged_holder_ = holder;
  spdlog::info("msg=\"another operator leads\" lease={} holder={}", name(), log_value(holder));
}

}  // namespace tj
