#include "trainer/comm/rendezvous.h"

#include <torch/torch.h>
#include <unistd.h>

#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "trainer/comm/deadline_guard.h"
#include "trainer/comm/gloo_communicator.h"
#include "trainer/comm/master_link.h"
#include "trainer/report/last_words.h"
#include "trainer/report/progress.h"

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

constexpr milliseconds kPollEvery{10};
constexpr milliseconds kGuardSlack{
    1500};  // past the deadline, so that a message that knows more comes first
constexpr milliseconds kTellMax{
    1000};  // rank 0 lingers so long after a failure, to tell it to the others

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

class Meeting {
 public:
  Meeting(const ProcessEnv& env, milliseconds timeout)
      : env_(env), timeout_(timeout), deadline_(steady_clock::now() + timeout) {}

  std::variant<Joined, Failure> hold() {
    const DeadlineGuard guard(deadline_ + kGuardSlack, [this] { end_overdue(); });
    const Endpoint master{env_.master_addr, env_.master_port};
    const auto address = local_address_towards(master, deadline_);
    if (!address) return unmet("rank 0 at " + master_text() + ": " + address.error().message);
    try {
      const auto failure = env_.rank == 0 ? serve() : visit(master);
      if (failure) return *failure;
      Peers peers(store_, env_.rank, env_.world_size);
      peers.introduce(env_.node_name, *address);
      if (const auto absent = env_.rank == 0 ? gather() : report()) return *absent;
      peers.learn();
      const GlooOptions options{
          .rank = env_.rank, .world_size = env_.world_size, .address = *address};
      return Joined{.communicator = make_gloo_communicator(store_, std::move(peers), options),
                    .interface_address = *address};
    } catch (const std::exception& failure) {
      return unmet("the others, master " + master_text() + ": " + first_line(failure.what()));
    }
  }

 private:
  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }
  std::string master_text() const {
    return env_.master_addr + ":" + std::to_string(env_.master_port);
  }
  std::string self() const { return "rank " + std::to_string(env_.rank); }
  milliseconds left() const {
    return std::max(milliseconds(1),
                    std::chrono::duration_cast<milliseconds>(deadline_ - steady_clock::now()));
  }

  Failure unmet(const std::string& whom) const {
    const auto waited = std::chrono::duration<double>(steady_clock::now() - (deadline_ - timeout_));
    char text[32];
    std::snprintf(text, sizeof text, "%.0f s", waited.count());
    return {.exit_code = exit_code::kRendezvous,
            .reason = "RendezvousFailed",
            .message = self() + " waited " + text + " for " + whom};
  }

  [[noreturn]] void end_overdue() const {
    const Failure failure =
        unmet("rank 0 at " + master_text() + ": it accepts connections but does not answer");
    write_last_words({.reason = failure.reason,
                      .message = failure.message,
                      .rank = env_.rank,
                      .step = {},
                      .attempt = env_.attempt});
    say_error("trainer: " + failure.message);
    ::_exit(failure.exit_code);
  }

  void open_store(const std::string& host, const c10d::TCPStoreOptions& options) {
    store_ = c10::make_intrusive<c10d::PrefixStore>(
        "trainingjob/" + env_.job_uid + "/" + std::to_string(env_.attempt),
        c10::make_intrusive<c10d::TCPStore>(host, options));
    store_->setTimeout(left());
  }

  std::optional<Failure> serve() {
    auto socket = ListeningSocket::open(env_.master_port);
    if (!socket) {
      return Failure{.exit_code = exit_code::kRendezvous,
                     .reason = "PortInUse",
                     .message = self() + " can't open the rendezvous: " + describe(socket.error())};
    }
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(env_.master_port);
    options.isServer = true;
    options.waitWorkers = false;
    options.timeout = left();
    options.masterListenFd = std::move(*socket).release();
    open_store("127.0.0.1", options);
    store_->set("world_size", bytes_of(std::to_string(env_.world_size)));
    return std::nullopt;
  }

  std::optional<Failure> visit(const Endpoint& master) {
    const auto listening = wait_until_listening(master, deadline_);
    if (!listening) return unmet("rank 0 at " + master_text() + ": " + listening.error().message);
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(env_.master_port);
    options.waitWorkers = false;
    options.timeout = left();
    open_store(env_.master_addr, options);
    if (!appears("world_size")) {
      return unmet("rank 0 at " + master_text() +
                   ": it serves another job or attempt (ours: uid \"" + env_.job_uid +
                   "\", attempt " + std::to_string(env_.attempt) + ")");
    }
    const std::string theirs = store_->get_to_str("world_size");
    if (theirs != std::to_string(env_.world_size)) return refuse(theirs);
    if (store_->add("joined/" + std::to_string(env_.rank), 1) > 1) {
      return Failure{
          .exit_code = exit_code::kRendezvous,
          .reason = "RankTaken",
          .message = "another process has already joined as " + self() + " at " + master_text()};
    }
    return std::nullopt;
  }

  /// Polls, because a wait of the store that times out logs a stack.
  bool appears(const std::string& key) {
    while (!store_->check({key})) {
      if (steady_clock::now() >= deadline_) return false;
      std::this_thread::sleep_for(kPollEvery);
    }
    return true;
  }

  Failure refuse(const std::string& world_size_of_master) {
    const std::string message = self() + " was started with WORLD_SIZE " +
                                std::to_string(env_.world_size) + ", rank 0 with " +
                                world_size_of_master + "; it must be the same for all";
    store_->set("refused", bytes_of(message));
    return {.exit_code = exit_code::kBadConfig, .reason = "WorldSizeMismatch", .message = message};
  }

  std::string missing() {
    std::string ranks;
    for (int rank = 1; rank < env_.world_size; ++rank) {
      if (rank == env_.rank || store_->check({"joined/" + std::to_string(rank)})) continue;
      ranks += (ranks.empty() ? "rank " : ", rank ") + std::to_string(rank);
    }
    return ranks;
  }

  /// Rank 0: until all have come.
  std::optional<Failure> gather() {
    std::optional<Failure> failure;
    for (std::string absent = missing(); !absent.empty() && !failure; absent = missing()) {
      if (store_->check({"refused"})) {
        failure = Failure{.exit_code = exit_code::kBadConfig,
                          .reason = "WorldSizeMismatch",
                          .message = store_->get_to_str("refused")};
      } else if (steady_clock::now() >= deadline_) {
        failure = unmet(absent + " of world size " + std::to_string(env_.world_size) + " at port " +
                        std::to_string(env_.master_port));
      } else {
        std::this_thread::sleep_for(kPollEvery);
      }
    }
    store_->set("verdict", bytes_of(failure ? failure->message : std::string("go")));
    if (failure) std::this_thread::sleep_for(kTellMax);
    return failure;
  }

  /// The others: until rank 0 says that all have come.
  std::optional<Failure> report() {
    if (!appears("verdict")) {
      const std::string absent = missing();
      return unmet(absent.empty() ? "rank 0 at " + master_text() + " to go on"
                                  : absent + ", master " + master_text());
    }
    const std::string verdict = store_->get_to_str("verdict");
    if (verdict == "go") return std::nullopt;
    return Failure{.exit_code = exit_code::kRendezvous,
                   .reason = "RendezvousFailed",
                   .message = "rank 0 gave up: " + verdict};
  }

  const ProcessEnv& env_;
  milliseconds timeout_;
  Deadline deadline_;
  StorePtr store_;
};

}  // namespace

std::variant<Joined, Failure> rendezvous(const ProcessEnv& env, milliseconds timeout) {
  if (env.world_size == 1)
    return Joined{.communicator = make_single_communicator(), .interface_address = ""};
  return Meeting(env, timeout).hold();
}

}  // namespace tj::trainer
