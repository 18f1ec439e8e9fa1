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

namespace tj::trainer {
namespace {
using std::chrono::steady_clock;

constexpr std::size_t kReportBytesMax = 64 << 20;
/// Past the ranks' own deadlines, whose messages know more.
constexpr std::chrono::seconds kSlack{10};

/// What a failed meeting leads to, by the words in which the engine tells it.
std::string advice_for(const std::string& message) {
  if (message.find(" of world size ") != std::string::npos)
    return "every worker must run trainer check at the same time";
  if (message.ends_with(": no answer")) {
    return "nothing comes back: a firewall or a NetworkPolicy drops what goes to MASTER_PORT, or "
           "the address is an old one";
  }
  if (message.ends_with(": Connection refused"))
    return "nobody listens there: trainer check must run there too, as rank 0";
  return "";
}

struct Child {
  Spawned process;
  int local_rank = 0;
  std::string output;
  int exit_code = 0;
};

class EngineRun {
 public:
  EngineRun(const EngineRequest& request, SignalQueue& signals)
      : request_(request),
        signals_(signals),
        deadline_(steady_clock::now() + request.wait + kMeasureMax + kSlack) {}
  ~EngineRun() { end_all(); }
  EngineRun(const EngineRun&) = delete;
  EngineRun& operator=(const EngineRun&) = delete;

  EngineEnd run() {
    for (const ProcessEnv& process : request_.plan.processes) {
      if (auto failure = start(process)) return {.failure = std::move(failure)};
    }
    while (is_any_open()) {
      if (const auto signal = wait()) return {.stop_signal = signal};
      if (steady_clock::now() >= deadline_) return {.failure = overdue()};
    }
    end_all();
    return report();
  }

 private:
  std::optional<Finding> start(const ProcessEnv& process) {
    SpawnRequest spawned{.command = {engine_path(), "check"},
                         .env = child_env(request_.plan, process),
                         .capture_output = true};
    spawned.env.push_back({names::kEnvTerminationLog, words_.path_of(process.local_rank)});
    spawned.env.push_back({kEnvCheckWait, std::to_string(request_.wait.count())});
    spawned.env.push_back({kEnvCheckFacts, request_.facts});
    auto child = spawn(spawned);
    if (!child) {
      return Finding{.severity = Severity::fatal,
                     .check = "engine",
                     .found = describe(child.error()),
                     .advice = "trainer-engine must lie beside trainer"};
    }
    children_.push_back({.process = *std::move(child), .local_rank = process.local_rank});
    return std::nullopt;
  }

  bool is_any_open() const {
    return std::ranges::any_of(children_, [](const Child& child) {
      return child.process.out.open() || child.process.err.open();
    });
  }

  /// One turn: output of any child, a signal, or the deadline. Returns a signal that asks to stop.
  std::optional<int> wait() {
    std::vector<pollfd> polls{{.fd = signals_.fd(), .events = POLLIN, .revents = 0}};
    for (const Child& child : children_) {  // a closed one is -1, which poll() passes over
      polls.push_back({.fd = child.process.out.value(), .events = POLLIN, .revents = 0});
      polls.push_back({.fd = child.process.err.value(), .events = POLLIN, .revents = 0});
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline_ - steady_clock::now()).count();
    if (::poll(polls.data(), polls.size(), static_cast<int>(std::max<long>(0, left))) <= 0)
      return std::nullopt;
    for (const int signal : signals_.read_all())
      if (asks_to_stop(signal)) return signal;
    for (std::size_t at = 0; at < children_.size(); ++at) {
      if (polls[1 + 2 * at].revents != 0) take_output(children_[at]);
      if (polls[2 + 2 * at].revents != 0) pass_errors_on(children_[at].process.err);
    }
    return std::nullopt;
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

  static Finding overdue() {
    return {.severity = Severity::retry,
            .check = "links",
            .found = "measuring has not ended within " + std::to_string(kMeasureMax.count()) + " s",
            .advice =
                "the ranks have met, but a connection between two of them stands still: "
                "all ports between the nodes must be open, not only MASTER_PORT"};
  }

  EngineEnd report() const {
    // The first cause: others are lost in the wake of it.
    const auto failed = std::ranges::max_element(children_, {}, [](const Child& child) {
      return child.exit_code == exit_code::kPeerLost ? 1 : child.exit_code == 0 ? 0 : 2;
    });
    if (failed->exit_code != 0) return {.failure = failure_of(*failed)};
    auto document = nlohmann::json::parse(children_.front().output, nullptr, /*exceptions=*/false);
    if (!document.is_discarded()) return {.report = std::move(document)};
    return {.failure = Finding{.severity = Severity::fatal,
                               .check = "engine",
                               .found = "has ended without a report",
                               .advice = "trainer and trainer-engine must be of one build"}};
  }

  Finding failure_of(const Child& child) const {
    const auto words = from_termination_message(words_.read(child.local_rank));
    const bool is_meeting = child.exit_code == exit_code::kRendezvous;
    return {.severity = severity_of_exit(child.exit_code),
            .check = is_meeting ? "rendezvous" : "engine",
            .found = words ? words->message : describe_exit_code(child.exit_code),
            .advice = words ? advice_for(words->message) : ""};
  }

  const EngineRequest& request_;
  SignalQueue& signals_;
  steady_clock::time_point deadline_;
  WordFiles words_;
  std::vector<Child> children_;
};

}  // namespace

EngineEnd run_engines(const EngineRequest& request, SignalQueue& signals) {
  return EngineRun(request, signals).run();
}

}  // namespace tj::trainer
