#include "cli/submit/following.h"

#include <boost/asio/steady_timer.hpp>
#include <csignal>

#include "cli/plain_text.h"
#include "cli/run_report.h"
#include "cli/submit/output.h"
#include "operator/api/json.h"

namespace tj::submit {
namespace {

bool passes(Code code) { return code == Code::unavailable || code == Code::timeout; }

Error ended(const ObjectMeta& meta, Code code, std::string message) {
  return Error{code, std::move(message), "job " + to_string(meta.key()), {}};
}

}  // namespace

struct Interrupts::State {
  explicit State(boost::asio::io_context& loop) : signals(loop, SIGINT, SIGTERM, SIGHUP) {}
  boost::asio::signal_set signals;
  std::optional<int> number;
  bool is_closed = false;

  static void wait(const std::shared_ptr<State>& state) {
    state->signals.async_wait([state](auto failure, int number) {
      if (failure || state->is_closed) return;
      if (!state->number) state->number = number;
      wait(state);
    });
  }
};

Interrupts::Interrupts(boost::asio::io_context& loop) : state_(std::make_shared<State>(loop)) {
  State::wait(state_);
}

Interrupts::~Interrupts() {
  state_->is_closed = true;
  state_->signals.cancel();
  state_->signals.clear();
}

std::optional<int> Interrupts::number() const { return state_->number; }

int Interrupts::exit_code() const { return 128 + state_->number.value_or(0); }

void wait(Session& session, std::chrono::milliseconds time, const Interrupts& interrupts) {
  boost::asio::steady_timer timer(session.loop(), time);
  bool is_over = false;
  timer.async_wait([&is_over](auto) { is_over = true; });
  session.loop().restart();
  while (!is_over && !interrupts.number()) session.loop().run_one();
  timer.cancel();
  while (!is_over) session.loop().run_one();
}

Result<std::optional<TrainingJob>> follow(Session& session, const ObjectMeta& meta,
                                          const Interrupts& interrupts,
                                          const FollowOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto end = options.limit ? Clock::now() + *options.limit : Clock::time_point::max();
  std::string last_line;
  int failed_looks = 0;
  while (!interrupts.number()) {
    const auto object = session.call(
        {.verb = Verb::get, .resource = Resource::training_jobs, .ns = meta.ns, .name = meta.name});
    if (object) {
      failed_looks = 0;
      auto job = job_from_json(*object);
      if (!job) return job.error();
      if (job->meta.uid != meta.uid)
        return ended(meta, Code::conflict, "was deleted, and there is another one of that name");
      const std::string line = plain_line(status_line(*job));
      if (line != last_line) options.print(line);
      last_line = line;
      if (is_terminal(job->status.phase)) return std::optional(*std::move(job));
    } else if (object.error().code == Code::not_found) {
      return ended(meta, Code::not_found, "was deleted");
    } else if (!passes(object.error().code) || ++failed_looks > options.failed_looks_max) {
      return object.error();
    }
    if (Clock::now() >= end) {
      return ended(meta, Code::timeout,
                   "has not ended in time (" + (last_line.empty() ? "no status" : last_line) +
                       "); is an operator running?");
    }
    wait(session, options.period, interrupts);
  }
  return std::optional<TrainingJob>();
}

}  // namespace tj::submit
