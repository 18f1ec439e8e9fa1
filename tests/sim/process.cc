#include "tests/sim/process.h"

namespace tj::sim {
namespace {

constexpr int kTurnsMax = 2'000;  // of one message: more is a loop that never rests

}  // namespace

TimePoint wall_time(SteadyTime now) {
  static const TimePoint kStart = *parse_time("2026-11-21T00:00:00Z");
  return kStart + std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
}

Process::Process(LinkWorld world, std::string name, std::chrono::milliseconds skew, Bug bug)
    : now_(world.now),
      name_(name),
      link_(world, std::move(name)),
      saboteur_(sabotage(bug, link_)),
      rank0_(loop_, world.dice, world.weather) {
  ControllerOptions options{.ns = "",
                            .requests_in_flight_max = 4,
                            .now = [this, skew] { return wall_time(now_) + skew; },
                            .progress = &rank0_,
                            .steady_now = [this] { return now_; }};
  KubeApi& api = saboteur_ ? *saboteur_ : link_;
  controller_ = std::make_unique<Controller>(loop_, api, metrics_, std::move(options));
  controller_->start();
}

Process::~Process() { controller_.reset(); }

bool Process::is_due() const {
  const auto wake = controller_->next_wake();
  return wake && *wake <= now_;
}

void Process::turn() {
  if (link_.is_ready()) link_.turn();
  run();
}

void Process::run() {
  for (int turns = 0; turns < kTurnsMax; ++turns) {
    loop_.restart();
    if (loop_.poll_one() != 0) continue;
    if (!is_due()) return;
    controller_->wake();
  }
  is_spinning_ = true;
}

std::optional<SteadyTime> Process::next() const {
  const auto message = link_.next();
  const auto wake = controller_->next_wake();
  std::optional<SteadyTime> first = message ? message : wake;
  if (message && wake) first = std::min(*message, *wake);
  if (first) first = std::max(*first, frozen_until_);
  return first;
}

}  // namespace tj::sim
