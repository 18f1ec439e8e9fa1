#include "trainer/comm/rendezvous.h"

#include <torch/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "contract/names.h"
#include "trainer/comm/c10d_communicator.h"
#include "trainer/comm/nccl_words.h"
#include "trainer/comm/roll_call.h"
#include "trainer/network/master_link.h"
#include "trainer/network/network.h"
#include "trainer/network/network_facts.h"
#include "trainer/network/remedies.h"
#include "trainer/process/deadline_guard.h"
#include "trainer/process/early_stop.h"
#include "trainer/process/ending.h"
#include "trainer/process/failed_writes.h"
#include "trainer/process/lines.h"
#include "trainer/watch/judge.h"

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

constexpr milliseconds kPollEvery{10};
constexpr milliseconds kLookAgain{200};
// How long a wait lasts before it says for what; doubled each time. A store that is ours but busy
// answers within it.
constexpr milliseconds kTellFirst{5000};
constexpr milliseconds kTellEach{60'000};
constexpr const char* kAnnounced = "trainingjob/serves";
// Past the deadline, so that a message that knows more comes first, and rank 0 can tell it.
constexpr milliseconds kGuardSlack = kHearMax + milliseconds(1500);

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

class Meeting {
 public:
  Meeting(const ProcessEnv& env, const Accelerator& accelerator, const WatchRequest& watch,
          const MeetingOptions& options)
      : env_(env),
        accelerator_(accelerator),
        watch_(watch),
        options_(options),
        deadline_(steady_clock::now() + options.timeout) {}

  std::variant<Joined, Failure> hold() {
    const EarlyStopHandler handler([this](const Failure& failure) { tell_stop(failure); });
    auto met = meet();
    if (auto* const joined = std::get_if<Joined>(&met)) joined->watchdog = std::move(watchdog_);
    return met;
  }

 private:
  std::variant<Joined, Failure> meet() {
    const DeadlineGuard guard(deadline_ + kGuardSlack, [this] { end_overdue(); });
    try {
      if (const auto failure = check_interface_names()) return *failure;
      if (const auto failure = env_.rank == 0 ? open_store() : find_store()) return *failure;
      if (const auto failure = choose_interface()) return *failure;
      introduce();
      if (const auto failure = env_.rank == 0 ? gather() : report()) return *failure;
      peers_->learn();
      if (const auto failure = compare_ranks()) return *failure;
      set_network_variables();
      watch_peers();
      return connect();
    } catch (const NcclStartError& failure) {
      return told(
          {.exit_code = failure.is_of_this_node ? exit_code::kBadConfig : exit_code::kRendezvous,
           .reason = "NcclFailed",
           .message = named_self() + " can't start NCCL: " + failure.what()});
    } catch (const std::exception& failure) {
      const auto unmet_others =
          unmet("the others, master " + master_text() + ": " + cause_of(failure));
      return have_all_come_ ? told(unmet_others) : unmet_others;
    }
  }

  static std::optional<Failure> check_interface_names() {
    const auto valid = check_interfaces(chosen_interfaces(process_env));
    if (valid) return std::nullopt;
    return Failure{.exit_code = exit_code::kBadConfig,
                   .reason = "BadConfig",
                   .message = describe(valid.error())};
  }

  /// That of the way to rank 0, and what it can carry. Once the store has been found: before, the
  /// name may have led to another address, by another interface.
  std::optional<Failure> choose_interface() {
    const auto address = local_address_towards(master_, deadline_);
    if (!address)
      return unmet(with_remedy("rank 0 at " + master_text() + ": " + address.error().message));
    facts_ = network_facts(*address);
    network_ = choose_network(facts_, process_env);
    if (options_.network_chosen) options_.network_chosen(collectives());
    return std::nullopt;
  }

  void introduce() {
    peers_.emplace(store_, env_.rank, env_.world_size, peer_failure_);
    peers_->introduce({.node = env_.node_name,
                       .address = facts_.address,
                       .device = has_gpu() ? "cuda" : "cpu",
                       .transport = has_gpu() ? network_.transport : "",
                       .why = accelerator_.text,
                       .card = accelerator_.card});
  }

  std::optional<Failure> compare_ranks() {
    const auto difference = peers_->describe_differences();
    const auto shared = peers_->describe_shared_gpu();
    if (difference.empty() && shared.empty()) return std::nullopt;
    peers_->part();  // all have read it before rank 0 takes the store away
    return Failure{.exit_code = exit_code::kBadConfig,
                   .reason = difference.empty() ? "SharedGpu" : "RanksDiffer",
                   .message = difference.empty() ? shared : difference};
  }

  /// NCCL reads them when it starts, in connect().
  void set_network_variables() {
    if (!has_gpu()) return;
    for (const auto& [name, value] : network_.variables)
      ::setenv(name.c_str(), value.c_str(), /*overwrite=*/0);
  }

  /// Before any connection: a rank that freezes while all connect to all would hold them for
  /// minutes.
  void watch_peers() {
    watchdog_ =
        std::make_unique<Watchdog>(env_, watch_, *store_, peers_->seen_from_here(), peer_failure_);
    have_all_come_ = true;
  }

  Joined connect() {
    Joined joined;
    if (has_gpu()) joined.network = network_.rows;
    joined.collectives = collectives();
    joined.communicator = make_c10d_communicator(store_, *std::move(peers_),
                                                 {.clock = &watch_.clock,
                                                  .rank = env_.rank,
                                                  .world_size = env_.world_size,
                                                  .address = facts_.address,
                                                  .interfaces = chosen_interfaces(process_env),
                                                  .accelerator = accelerator_});
    return joined;
  }

  std::string collectives() const {
    return has_gpu() ? describe_collectives(network_)
                     : describe_collectives(network_, accelerator_.text);
  }

  bool has_gpu() const { return accelerator_.plugin != nullptr; }
  std::string master_text() const {
    return env_.master_addr + ":" + std::to_string(env_.master_port);
  }
  std::string self() const { return "rank " + std::to_string(env_.rank); }
  std::string named_self() const { return trainer::named(env_.rank, env_.node_name); }
  milliseconds left() const {
    return std::max(milliseconds(1),
                    std::chrono::duration_cast<milliseconds>(deadline_ - steady_clock::now()));
  }

  Failure unmet(const std::string& whom) const {
    const auto begun = deadline_ - options_.timeout;
    const auto waited = std::chrono::duration<double>(steady_clock::now() - begun);
    char text[32];
    std::snprintf(text, sizeof text, "%.0f s", waited.count());
    return {.exit_code = exit_code::kRendezvous,
            .reason = "RendezvousFailed",
            .message = self() + " waited " + text + " for " + whom};
  }

  /// Once all have come: the others know of it before this rank closes its sockets. Returns it, or
  /// what another rank has told before.
  Failure told(const Failure& failure) {
    watchdog_->tell(failure);
    const auto first = peer_failure_->known();
    if (!first || first->rank == env_.rank) return failure;
    return peer_lost(PeerLostError(first->message));
  }

  /// This rank was asked to stop and is about to end: those who wait for it hear of it.
  void tell_stop(const Failure& failure) {
    if (have_all_come_) {
      watchdog_->tell(failure);
    } else if (has_joined_ && env_.rank == 0) {
      give_up("it was " + failure.message);
    } else if (has_joined_) {
      store_->set("gone", bytes_of(named_self() + " was " + failure.message));
    }
  }

  [[noreturn]] void end_overdue() {
    const Failure failure =
        have_all_come_
            ? told(unmet("connections to the other ranks by " + network_.control +
                         ": all have come to rank 0, but not all can reach each other; every port "
                         "between the nodes must be open"))
            : unmet(with_remedy("rank 0 at " + master_text() +
                                ": it accepts connections but does not answer"));
    ::_exit(end_with(failure, env_, {}));
  }

  /// What rank 0 announces in plain sight: whose store this is.
  std::string announcement() const {
    return "uid \"" + env_.job_uid + "\", attempt " + std::to_string(env_.attempt);
  }

  void keep(const c10::intrusive_ptr<c10d::TCPStore>& store) {
    store_ = c10::make_intrusive<c10d::PrefixStore>(
        "trainingjob/" + env_.job_uid + "/" + std::to_string(env_.attempt), store);
    store_->setTimeout(left());
  }

  /// For those who ask where a rank should have been.
  void name_node() {
    store_->set("node/" + std::to_string(env_.worker_index), bytes_of(env_.node_name));
  }

  /// Rank 0: the store is its own.
  std::optional<Failure> open_store() {
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
    const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    keep(store);
    store_->set("world_size", bytes_of(std::to_string(env_.world_size)));
    name_node();
    store->set(kAnnounced, bytes_of(announcement()));
    has_joined_ = true;
    return std::nullopt;
  }

  /// Empty once store_ is the one of this job and attempt; else why it is not, this time.
  std::string try_visit(milliseconds limit) {
    const auto end = std::min(deadline_, steady_clock::now() + limit);
    const auto listening = wait_until_listening(master_, end);
    if (!listening) return listening.error().message;
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(env_.master_port);
    options.waitWorkers = false;
    options.timeout = std::min(left(), limit);
    try {
      const auto store = c10::make_intrusive<c10d::TCPStore>(env_.master_addr, options);
      if (!appears(*store, kAnnounced, std::min(deadline_, steady_clock::now() + limit)))
        return "its store is not one of ours";
      const std::string theirs = store->get_to_str(kAnnounced);
      if (theirs != announcement()) {
        return "it serves another job or attempt (ours: " + announcement() + "; theirs: " + theirs +
               ")";
      }
      keep(store);
      return "";
    } catch (const std::exception&) {
      return "it accepts connections but does not answer";
    }
  }

  /// The address may still lead to an earlier attempt, or to somebody else: until the deadline the
  /// name is resolved and tried again.
  std::optional<Failure> visit() {
    std::string told;
    for (milliseconds limit = kTellFirst;; limit = std::min(limit * 2, kTellEach)) {
      const std::string cause = try_visit(limit);
      if (cause.empty()) return std::nullopt;
      // The last try may have been too short to see as much as the one before it.
      const bool is_over = steady_clock::now() >= deadline_;
      const std::string whom =
          "rank 0 at " + master_text() + ": " + (is_over && !told.empty() ? told : cause);
      if (is_over) return unmet(with_remedy(whom));
      if (cause != std::exchange(told, cause))
        say_error("trainer: " + self() + " waits for " + whom);
      std::this_thread::sleep_for(std::min(left(), kLookAgain));
    }
  }

  /// The others: the store is that of rank 0.
  std::optional<Failure> find_store() {
    if (const auto failure = visit()) return failure;
    const std::string theirs = store_->get_to_str("world_size");
    if (theirs != std::to_string(env_.world_size)) return refuse(theirs);
    if (store_->add("joined/" + std::to_string(env_.rank), 1) > 1) {
      return Failure{
          .exit_code = exit_code::kRendezvous,
          .reason = "RankTaken",
          .message = "another process has already joined as " + self() + " at " + master_text()};
    }
    name_node();
    has_joined_ = true;
    return std::nullopt;
  }

  /// Polls, because a wait of the store that times out logs a stack.
  static bool appears(c10d::Store& store, const std::string& key, Deadline end) {
    while (!store.check({key})) {
      if (steady_clock::now() >= end) return false;
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

  std::vector<int> ranks_of_others() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < env_.world_size; ++rank) {
      if (rank != env_.rank) ranks.push_back(rank);
    }
    return ranks;
  }

  void strike_out_joined(std::vector<int>& absent) {
    std::erase_if(absent,
                  [this](int rank) { return store_->check({"joined/" + std::to_string(rank)}); });
  }

  std::string describe_missing(const std::vector<int>& absent) {
    RollCall known{.local_world_size = env_.local_world_size,
                   .job = process_env(names::kEnvJobName).value_or(""),
                   .nodes = {}};
    for (const int rank : absent) {
      const int worker = rank / env_.local_world_size;
      const std::string key = "node/" + std::to_string(worker);
      if (!known.nodes.contains(worker) && store_->check({key}))
        known.nodes[worker] = store_->get_to_str(key);
    }
    return describe_absent(absent, known);
  }

  std::string absent_text(const std::vector<int>& absent) {
    return describe_missing(absent) + " of world size " + std::to_string(env_.world_size) +
           " at port " + std::to_string(env_.master_port);
  }

  /// Rank 0: until all have come.
  std::optional<Failure> gather() {
    std::optional<Failure> failure;
    auto absent = ranks_of_others();
    milliseconds tell_pause = kTellFirst;
    auto tell_at = steady_clock::now() + tell_pause;
    for (strike_out_joined(absent); !absent.empty() && !failure; strike_out_joined(absent)) {
      if (store_->check({"refused"})) {
        failure = Failure{.exit_code = exit_code::kBadConfig,
                          .reason = "WorldSizeMismatch",
                          .message = store_->get_to_str("refused")};
      } else if (store_->check({"gone"})) {
        failure = Failure{.exit_code = exit_code::kRendezvous,
                          .reason = "RendezvousFailed",
                          .message = store_->get_to_str("gone")};
      } else if (steady_clock::now() >= deadline_) {
        failure = unmet(with_remedy(absent_text(absent)));
      } else if (steady_clock::now() >= tell_at) {
        say_error("trainer: rank 0 waits for " + absent_text(absent));
        tell_pause = std::min(tell_pause * 2, kTellEach);
        tell_at += tell_pause;
      } else {
        std::this_thread::sleep_for(kPollEvery);
      }
    }
    if (failure) {
      give_up(failure->message);
    } else {
      store_->set("answer", bytes_of("go"));
    }
    return failure;
  }

  /// Rank 0: returns once all who have come know why, or after a bound; the store goes with it.
  void give_up(const std::string& cause) {
    auto absent = ranks_of_others();
    strike_out_joined(absent);
    const int come_count = env_.world_size - 1 - static_cast<int>(absent.size());
    store_->set("answer", bytes_of(cause));
    const auto end = steady_clock::now() + kHearMax;
    while (store_->add("answer/heard", 0) < come_count && steady_clock::now() < end)
      std::this_thread::sleep_for(kPollEvery);
  }

  /// The others: until rank 0 says that all have come.
  std::optional<Failure> report() {
    std::optional<Failure> failure;
    if (!appears(*store_, "answer", deadline_)) {
      auto absent = ranks_of_others();
      strike_out_joined(absent);
      failure = unmet(absent.empty() ? "rank 0 at " + master_text() + " to go on"
                                     : describe_missing(absent) + ", master " + master_text());
    } else if (const std::string answer = store_->get_to_str("answer"); answer != "go") {
      failure = Failure{.exit_code = exit_code::kRendezvous,
                        .reason = "RendezvousFailed",
                        .message = "rank 0 gave up: " + answer};
    }
    if (failure) store_->add("answer/heard", 1);
    return failure;
  }

  const ProcessEnv& env_;
  const Accelerator& accelerator_;
  const WatchRequest& watch_;
  const MeetingOptions& options_;
  Deadline deadline_;
  Endpoint master_{env_.master_addr, env_.master_port};
  StorePtr store_;
  NetworkFacts facts_;     // of the interface towards rank 0
  NetworkChoice network_;  // read by the guard once all have come
  std::optional<Peers> peers_;
  std::shared_ptr<KnownPeerFailure> peer_failure_ =
      std::make_shared<KnownPeerFailure>(env_.rank, env_.world_size);
  std::unique_ptr<Watchdog> watchdog_;
  std::atomic<bool> has_joined_ = false;     // the store is there
  std::atomic<bool> have_all_come_ = false;  // the watchdog is there
};

}  // namespace

std::variant<Joined, Failure> rendezvous(const ProcessEnv& env, const Accelerator& accelerator,
                                         const WatchRequest& watch, const MeetingOptions& options) {
  if (env.world_size > 1) {
    outlive_broken_sockets();
    return Meeting(env, accelerator, watch, options).hold();
  }
  const auto alone = c10::make_intrusive<c10d::HashStore>();
  const std::string collectives = "collectives: none, a single rank: " + accelerator.text;
  if (options.network_chosen) options.network_chosen(collectives);
  return Joined{.communicator = make_single_communicator(),
                .collectives = collectives,
                .network = {},
                .watchdog = std::make_unique<Watchdog>(
                    env, watch, *alone,
                    std::vector<Watchdog::Peer>{{.node = env.node_name, .pid = ::getpid()}},
                    std::make_shared<KnownPeerFailure>(/*rank=*/0, /*world_size=*/1))};
}

}  // namespace tj::trainer
