#include "trainer/check/engine_run.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "contract/names.h"
#include "contract/outcome.h"
#include "trainer/check/engine_part.h"
#include "trainer/launch/engine.h"
#include "trainer/launch/failure.h"
#include "trainer/launch/spawn.h"
#include "trainer/launch/word_files.h"
#include "trainer/network/remedies.h"

namespace tj::trainer {
namespace {
using std::chrono::steady_clock;

constexpr std::size_t kReportBytesMax = 64 << 20;
/// Past the ranks' own deadlines, whose messages know more.
constexpr std::chrono::seconds kSlack{10};

Finding no_engine(const Error& error, const std::string& advice) {
  return {.severity = Severity::fatal,
          .check = "engine",
          .found = describe(error),
          .advice = advice,
          .where = {}};
}

struct Child {
  Spawned process;
  int local_rank = 0;
  std::string output;
  int exit_code = 0;
};

/// Engines that run beside each other, until all have ended or time is over.
class Engines {
 public:
  Engines(SignalQueue& signals, steady_clock::time_point deadline)
      : signals_(signals), deadline_(deadline) {}
  ~Engines() { end_all(); }
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;

  std::optional<Finding> start(SpawnRequest request, int local_rank) {
    request.command.insert(request.command.begin(), engine_path());
    request.env.push_back({names::kEnvTerminationLog, words_.path_of(local_rank)});
    request.capture_output = true;
    if (children_.empty())  // the others are the same program
      if (const auto whole = check_engine_libraries(); !whole)
        return no_engine(whole.error(), "trainer train would end so, too");
    auto child = spawn(request);
    if (!child) return no_engine(child.error(), "trainer-engine must lie beside trainer");
    children_.push_back({.process = *std::move(child), .local_rank = local_rank});
    return std::nullopt;
  }

  enum class End { all_ended, overdue, stopped };

  /// No process is left.
  End run() {
    End end = End::all_ended;
    while (end == End::all_ended && is_any_open()) end = wait();
    end_all();
    return end;
  }

  const std::vector<Child>& children() const { return children_; }
  int stop_signal() const { return stop_signal_; }
  Result<Outcome> words(const Child& child) {
    return from_termination_message(words_.read(child.local_rank));
  }

 private:
  bool is_any_open() const {
    return std::ranges::any_of(children_, [](const Child& child) {
      return child.process.out.open() || child.process.err.open();
    });
  }

  /// One turn: output of any child, a signal, or the deadline.
  End wait() {
    std::vector<pollfd> polls{{.fd = signals_.fd(), .events = POLLIN, .revents = 0}};
    for (const Child& child : children_) {  // a closed one is -1, which poll() passes over
      polls.push_back({.fd = child.process.out.value(), .events = POLLIN, .revents = 0});
      polls.push_back({.fd = child.process.err.value(), .events = POLLIN, .revents = 0});
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline_ - steady_clock::now()).count();
    if (::poll(polls.data(), polls.size(), static_cast<int>(std::max<long>(0, left))) > 0) {
      for (const int signal : signals_.read_all()) {
        if (!asks_to_stop(signal)) continue;
        stop_signal_ = signal;
        return End::stopped;
      }
      for (std::size_t at = 0; at < children_.size(); ++at) {
        if (polls[1 + 2 * at].revents != 0) take_output(children_[at]);
        if (polls[2 + 2 * at].revents != 0) pass_errors_on(children_[at].process.err);
      }
    }
    return steady_clock::now() >= deadline_ ? End::overdue : End::all_ended;
  }

  static void take_output(Child& child) {
    std::array<char, 65536> bytes;
    const auto count = ::read(child.process.out.value(), bytes.data(), bytes.size());
    if (count <= 0 || child.output.size() > kReportBytesMax) return child.process.out.reset();
    child.output.append(bytes.data(), static_cast<std::size_t>(count));
  }

  /// For whom a rank waits: people want to read it while it waits.
  static void pass_errors_on(UniqueFd& err) {
    std::array<char, 4096> bytes;
    const auto count = ::read(err.value(), bytes.data(), bytes.size());
    if (count <= 0) return err.reset();
    const auto ignored = ::write(STDERR_FILENO, bytes.data(), static_cast<std::size_t>(count));
    static_cast<void>(ignored);
  }

  void end_all() {
    for (Child& child : children_) {
      if (child.process.pid == 0) continue;
      if (is_any_open()) ::kill(-child.process.pid, SIGKILL);
      int status = 0;
      ::waitpid(std::exchange(child.process.pid, 0), &status, 0);
      child.exit_code = exit_code_of(status);
    }
  }

  SignalQueue& signals_;
  steady_clock::time_point deadline_;
  WordFiles words_;
  std::vector<Child> children_;
  int stop_signal_ = 0;
};

Finding overdue() {
  return {.severity = Severity::retry,
          .check = "links",
          .found = "measuring has not ended within " + std::to_string(kMeasureMax.count()) + " s",
          .advice =
              "the ranks have met, but a connection between two of them stands still: "
              "all ports between the nodes must be open, not only MASTER_PORT"};
}

Finding failure_of(const Child& child, const Result<Outcome>& words) {
  const bool is_meeting = child.exit_code == exit_code::kRendezvous;
  auto [cause, remedy] = split_remedy(words ? words->message : describe_exit_code(child.exit_code));
  return {.severity = severity_of_exit(child.exit_code),
          .check = is_meeting ? "rendezvous" : "engine",
          .found = std::move(cause),
          .advice = std::move(remedy)};
}

EngineEnd report_of(Engines& engines) {
  // The first cause: others are lost in the wake of it.
  const auto& children = engines.children();
  const auto failed = std::ranges::max_element(children, {}, [](const Child& child) {
    return child.exit_code == exit_code::kPeerLost ? 1 : child.exit_code == 0 ? 0 : 2;
  });
  if (failed->exit_code != 0) return {.failure = failure_of(*failed, engines.words(*failed))};
  auto document = nlohmann::json::parse(children.front().output, nullptr, /*exceptions=*/false);
  if (!document.is_discarded()) return {.report = std::move(document)};
  return {.failure = Finding{.severity = Severity::fatal,
                             .check = "engine",
                             .found = "has ended without a report",
                             .advice = "trainer and trainer-engine must be of one build"}};
}

}  // namespace

EngineEnd run_engines(const EngineRequest& request, SignalQueue& signals) {
  Engines engines(signals, steady_clock::now() + request.wait + kMeasureMax + kSlack);
  for (const ProcessEnv& process : request.plan.processes) {
    SpawnRequest spawned{.command = {"check"}, .env = child_env(request.plan, process)};
    spawned.env.push_back({kEnvCheckWait, std::to_string(request.wait.count())});
    spawned.env.push_back({kEnvCheckFacts, request.facts});
    if (auto failure = engines.start(std::move(spawned), process.local_rank))
      return {.failure = std::move(failure)};
  }
  switch (engines.run()) {
    case Engines::End::stopped: return {.stop_signal = engines.stop_signal()};
    case Engines::End::overdue: return {.failure = overdue()};
    case Engines::End::all_ended: break;
  }
  return report_of(engines);
}

DataEnd describe_data(const std::vector<std::string>& flags, SignalQueue& signals) {
  Engines engines(signals, steady_clock::now() + kDataMax);
  SpawnRequest request{.command = {"describe-data"}, .env = {}};
  request.command.insert(request.command.end(), flags.begin(), flags.end());
  if (const auto failure = engines.start(std::move(request), 0))
    return {.failure = failure->found + "; " + failure->advice};
  switch (engines.run()) {
    case Engines::End::stopped: return {.stop_signal = engines.stop_signal()};
    case Engines::End::overdue:
      return {.failure = "was not opened within " + std::to_string(kDataMax.count()) + " s"};
    case Engines::End::all_ended: break;
  }
  const Child& child = engines.children().front();
  if (child.exit_code == 0) return {.description = child.output.substr(0, child.output.find('\n'))};
  const auto words = engines.words(child);
  return {.failure = words ? words->message : describe_exit_code(child.exit_code)};
}

PlanEnd plan_training(const LaunchPlan& plan, const std::vector<std::string>& flags,
                      SignalQueue& signals) {
  Engines engines(signals, steady_clock::now() + kPlanMax);
  const std::string ranks = std::to_string(plan.identity.world_size());
  SpawnRequest request{.command = {"plan", "--json", "--world", ranks},
                       .env = child_env(plan, plan.processes.front())};
  request.command.insert(request.command.end(), flags.begin(), flags.end());
  if (const auto failure = engines.start(std::move(request), 0))
    return {.failure = failure->found + "; " + failure->advice};
  switch (engines.run()) {
    case Engines::End::stopped: return {.stop_signal = engines.stop_signal()};
    case Engines::End::overdue:
      return {.failure =
                  "planning it has not ended within " + std::to_string(kPlanMax.count()) + " s"};
    case Engines::End::all_ended: break;
  }
  const Child& child = engines.children().front();
  if (child.exit_code == 0) {
    auto document = nlohmann::json::parse(child.output, nullptr, /*exceptions=*/false);
    if (!document.is_discarded()) return {.document = std::move(document)};
  }
  const auto words = engines.words(child);
  return {.failure = words ? words->message : describe_exit_code(child.exit_code)};
}

}  // namespace tj::trainer
