#include "operator/loop/lease.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "operator/api/read.h"
#include "operator/kube/kube_api.h"

namespace tj {
namespace {
using namespace read;
using std::chrono::milliseconds;

/// metav1.MicroTime: six digits, or a server refuses it.
std::string micro_time(TimePoint time) {
  const auto fraction = time - std::chrono::floor<std::chrono::seconds>(time);
  char digits[16];
  std::snprintf(digits, sizeof digits, ".%03d000Z", static_cast<int>(fraction.count()));
  std::string text = format_time(time);
  text.pop_back();
  return text + digits;
}

}  // namespace

LeaderLease::LeaderLease(LeaseTarget target)
    : target_(std::move(target)),
      random_(static_cast<unsigned>(std::hash<std::string>{}(target_.identity))) {}

std::optional<LeaseCommand> LeaderLease::start(SteadyTime now) { return look(now); }

std::optional<LeaseCommand> LeaderLease::on_look(const Result<std::string>& answer, Moment now) {
  check(now.steady);
  if (lost_reason_) return std::nullopt;
  const bool is_there = answer || answer.error().code != Code::not_found;
  if (!is_there) {
    record_ = {};
  } else if (const Result<void> read = learn(answer, now.steady); !read) {
    return failed(read.error(), look_sent_, now.steady);
  }
  if (!is_free(now.steady)) {
    if (leads_until_) {
      lose("\"" + record_.holder + "\" has taken it");
      return std::nullopt;
    }
    const SteadyTime expiry = record_.seen + record_.duration;
    return wait_until(std::min(now.steady + kLeaseRetry, expiry) + jitter(), now.steady,
                      Next::look);
  }
  // Whatever answers our writes with conflicts must not make us spin.
  const bool is_early = write_sent_ && now.steady < *write_sent_ + kLeaseRetry;
  if (!is_early) return write(now);
  return wait_until(*write_sent_ + kLeaseRetry, now.steady,
                    leads_until_ ? Next::write : Next::look);
}

std::optional<LeaseCommand> LeaderLease::on_written(const Result<std::string>& answer, Moment now) {
  check(now.steady);
  if (lost_reason_) return std::nullopt;
  if (const Result<void> read = learn(answer, now.steady); !read) {
    const bool has_moved =
        read.error().code == Code::conflict || read.error().code == Code::not_found;
    if (!has_moved) return failed(read.error(), *write_sent_, now.steady);
    last_error_ = describe(read.error());
    return look(now.steady);
  }
  // From when it was sent: others count from when they saw it, which is later.
  const SteadyTime until = *write_sent_ + kRenewDeadline;
  if (now.steady >= until) return look(now.steady);
  leads_until_ = until;
  return wait_until(*write_sent_ + kLeaseRetry, now.steady, Next::write);
}

std::optional<LeaseCommand> LeaderLease::on_waited(Moment now) {
  check(now.steady);
  if (lost_reason_) return std::nullopt;
  return next_ == Next::write ? write(now) : look(now.steady);
}

std::optional<LeaseCommand> LeaderLease::release(Moment now) {
  if (!leads(now.steady)) return std::nullopt;
  leads_until_.reset();
  lost_reason_ = "it was given back";
  return WriteLease{.is_new = false, .body = body("", now.wall)};
}

void LeaderLease::check(SteadyTime now) {
  if (!leads_until_ || now < *leads_until_) return;
  std::string reason = "it could not be renewed within " +
                       std::to_string(kRenewDeadline / std::chrono::seconds{1}) + " s";
  if (!last_error_.empty()) reason += ": " + last_error_;
  lose(std::move(reason));
}

/// Takes an answer as what is there now. A change of the metadata alone is no sign of life.
Result<void> LeaderLease::learn(const Result<std::string>& answer, SteadyTime now) {
  if (!answer) return answer.error();
  const json lease = parse(*answer);
  if (string_at(object_at(lease, "metadata"), "resourceVersion").empty()) {
    return Error{Code::internal, "the answer is no Lease", target_.ns + "/" + target_.name, {}};
  }
  const json& spec = object_at(lease, "spec");
  const auto seconds = number_at<std::int64_t>(spec, "leaseDurationSeconds");
  const bool is_same = !record_.object.empty() && spec.dump() == record_.spec;
  record_ = {.object = *answer,
             .spec = spec.dump(),
             .holder = string_at(spec, "holderIdentity"),
             .duration = std::chrono::seconds{std::clamp<std::int64_t>(
                 seconds, 1, kForeignDurationMax.count())},
             .seen = is_same ? record_.seen : now};
  last_error_.clear();
  return {};
}

bool LeaderLease::is_free(SteadyTime now) const {
  if (record_.holder.empty() || record_.holder == target_.identity) return true;
  return now >= record_.seen + record_.duration;
}

LeaseCommand LeaderLease::look(SteadyTime now) {
  look_sent_ = now;
  return LookAtLease{};
}

LeaseCommand LeaderLease::write(Moment now) {
  write_sent_ = now.steady;
  return WriteLease{.is_new = record_.object.empty(), .body = body(target_.identity, now.wall)};
}

LeaseCommand LeaderLease::wait_until(SteadyTime at, SteadyTime now, Next next) {
  next_ = next;
  return WaitForLease{std::max(std::chrono::ceil<milliseconds>(at - now), milliseconds{0})};
}

/// Whether a write took effect is unknown: only a look can tell.
std::optional<LeaseCommand> LeaderLease::failed(const Error& error, SteadyTime sent,
                                                SteadyTime now) {
  last_error_ = describe(error);
  return wait_until(sent + kLeaseRetry + (leads_until_ ? milliseconds{0} : jitter()), now,
                    Next::look);
}

/// All of the object that we do not own stays as it was read.
std::string LeaderLease::body(const std::string& holder, TimePoint now) const {
  json lease = parse(record_.object);
  if (!lease.is_object()) {
    lease = {{"apiVersion", api_version_of(Resource::leases)},
             {"kind", "Lease"},
             {"metadata", {{"name", target_.name}, {"namespace", target_.ns}}}};
  }
  const bool is_ours = record_.holder == target_.identity;
  const bool is_first = record_.object.empty();
  json& spec = lease["spec"];
  if (!spec.is_object()) spec = json::object();
  const auto transitions = number_at<std::int32_t>(spec, "leaseTransitions");
  if (!is_ours) {
    spec["acquireTime"] = micro_time(now);
    spec["leaseTransitions"] = is_first ? 0 : std::int64_t{transitions} + 1;
  }
  spec["holderIdentity"] = holder;
  // As client-go has it: what is given back lasts a second.
  spec["leaseDurationSeconds"] = holder.empty() ? 1 : kLeaseDuration / std::chrono::seconds{1};
  spec["renewTime"] = micro_time(now);
  return lease.dump();
}

milliseconds LeaderLease::jitter() {
  return milliseconds{
      std::uniform_int_distribution<int>(0, static_cast<int>(kLeaseJitterMax.count()))(random_)};
}

void LeaderLease::lose(std::string reason) {
  leads_until_.reset();
  lost_reason_ = std::move(reason);
}

}  // namespace tj
