#include "trainer/comm/peers.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "contract/launch_env.h"
#include "contract/names.h"
#include "contract/utf8.h"
#include "trainer/comm/nccl_words.h"
#include "trainer/process/process_state.h"
#include "trainer/watch/judge.h"

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kStoreTimeout{2};
constexpr milliseconds kPollEvery{10};
constexpr milliseconds kDyingMax{500};  // a killed process closes its sockets before it is a zombie
constexpr seconds kPartMax{5};

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// Equal for two processes that see each other's process numbers.
std::string machine_id() {
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(boot, id);
  std::error_code unreadable;
  return id + " " + std::filesystem::read_symlink("/proc/self/ns/pid", unreadable).string();
}

/// Gone, or a zombie that nobody has fetched yet.
bool has_ended(int pid) {
  const auto state = process_state(pid);
  return !state || *state == 'Z' || *state == 'X';
}

/// Gloo's text without its source line: ": Connection closed by peer [10.0.0.2]:40000"; of NCCL's
/// the cause, and what to do.
std::string network_text(const std::string& cause) {
  if (is_of_nccl(cause)) return ": " + describe(nccl_words(cause));
  const auto source = cause.find("gloo/");
  const auto end = source == std::string::npos ? source : cause.find("] ", source);
  if (end == std::string::npos) return "";
  const auto begin = end + 2;
  return ": " + cause.substr(begin, cause.find('\n', begin) - begin);
}

}  // namespace

Peers::Peers(c10::intrusive_ptr<c10d::Store> store, int rank, int world_size,
             std::shared_ptr<KnownPeerFailure> peer_failure)
    : store_(std::move(store)),
      rank_(rank),
      world_size_(world_size),
      peer_failure_(std::move(peer_failure)) {}

void Peers::introduce(const Introduction& self) {
  // What a driver or the loader says of a path may be no UTF-8.
  const nlohmann::json words = {{"machine", machine_id()},
                                {"node", self.node},
                                {"address", with_invalid_utf8_replaced(self.address)},
                                {"device", with_invalid_utf8_replaced(self.device)},
                                {"transport", self.transport},
                                {"why", with_invalid_utf8_replaced(self.why)},
                                {"card", self.card},
                                {"pid", ::getpid()}};
  store_->set("peer/" + std::to_string(rank_), bytes_of(words.dump()));
}

void Peers::learn() {
  for (int rank = 0; rank < world_size_; ++rank) {
    const auto document = nlohmann::json::parse(store_->get("peer/" + std::to_string(rank)));
    peers_.push_back({.machine = document.at("machine").get<std::string>(),
                      .node = document.at("node").get<std::string>(),
                      .address = document.at("address").get<std::string>(),
                      .device = document.at("device").get<std::string>(),
                      .transport = document.at("transport").get<std::string>(),
                      .why = document.at("why").get<std::string>(),
                      .card = document.at("card").get<std::string>(),
                      .pid = document.at("pid").get<int>()});
  }
}

std::string Peers::named(int rank) const {
  return trainer::named(rank, peers_[static_cast<std::size_t>(rank)].node);
}

std::string Peers::describe_differences() const {
  const auto differing = [this](std::string Peer::*fact) {
    std::string text, told;
    for (int rank = 0; rank < world_size_; ++rank) {
      const Peer& peer = peers_[static_cast<std::size_t>(rank)];
      if (peer.*fact == peers_.front().*fact) continue;
      text += (text.empty() ? "" : ", ") + named(rank);
      // Once is enough where all have the same cause.
      if (fact == &Peer::device && peer.why != told) text += " (" + (told = peer.why) + ")";
    }
    return text;
  };
  const Peer& first = peers_.front();
  if (const auto others = differing(&Peer::device); !others.empty()) {
    return named(0) + " trains on " + first.device + " (" + first.why + "), but not " + others +
           "; --device cpu lets all train on the CPU";
  }
  if (const auto others = differing(&Peer::transport); !others.empty()) {
    return named(0) + " has " + first.transport + " for NCCL, but not " + others +
           "; NCCL_IB_DISABLE=1 on all lets all use Ethernet";
  }
  return "";
}

std::string Peers::describe_shared_gpu() const {
  std::map<std::string, std::vector<int>> ranks_by_card;
  for (int rank = 0; rank < world_size_; ++rank) {
    const auto& card = peers_[static_cast<std::size_t>(rank)].card;
    if (!card.empty()) ranks_by_card[card].push_back(rank);
  }
  const auto shared =
      std::ranges::find_if(ranks_by_card, [](const auto& card) { return card.second.size() > 1; });
  if (shared == ranks_by_card.end()) return "";
  std::string text;
  for (const int rank : shared->second) text += (text.empty() ? "" : " and ") + named(rank);
  return text + " have one GPU between them, " + shared->first +
         "; NCCL needs one for each rank: a smaller LOCAL_WORLD_SIZE (trainer launch --nproc), "
         "other CUDA_VISIBLE_DEVICES, or --device cpu";
}

std::optional<int> Peers::find_lost(const std::string& cause) const {
  if (world_size_ == 2) return 1 - rank_;
  const auto& self = peers_[static_cast<std::size_t>(rank_)];
  const auto end = steady_clock::now() + kDyingMax;
  do {
    for (int rank = 0; rank < world_size_; ++rank) {
      const auto& peer = peers_[static_cast<std::size_t>(rank)];
      if (rank != rank_ && peer.machine == self.machine && has_ended(peer.pid)) return rank;
    }
    std::this_thread::sleep_for(kPollEvery);
  } while (steady_clock::now() < end);
  // The text has the peer's address, which is a rank's own where each has a pod: in Gloo's
  // brackets, or before NCCL's "<port>".
  int found = -1;
  for (int rank = 0; rank < world_size_; ++rank) {
    const auto& address = peers_[static_cast<std::size_t>(rank)].address;
    const bool is_named = cause.find("[" + address + "]") != std::string::npos ||
                          cause.find(" " + address + "<") != std::string::npos;
    if (rank == rank_ || !is_named) continue;
    found = found < 0 ? rank : world_size_;
  }
  if (found < 0 || found == world_size_) return std::nullopt;
  return found;
}

PeerFailure Peers::describe_lost(const std::string& cause, const Seen& seen) const {
  const auto lost = find_lost(cause);
  const std::string who =
      lost ? named(*lost) : "one of the other " + std::to_string(world_size_ - 1) + " ranks";
  return {.message = who + " was lost, in " + phase_text(seen) + network_text(cause),
          .absent = lost.value_or(-1)};
}

std::string Peers::describe_failure(const std::string& cause, const Seen& seen) noexcept {
  try {
    store_->setTimeout(kStoreTimeout);
    auto failure = peer_failure_->ask(*store_);
    if (!failure) failure = peer_failure_->settle(*store_, describe_lost(cause, seen));
    peer_failure_->acknowledge(*store_);
    return failure->message;
  } catch (const std::exception&) {
    // Rank 0 was free to close the store once any thread of this rank had heard why.
    if (const auto failure = peer_failure_->known()) return failure->message;
    return named(0) + " was lost, in " + phase_text(seen) + ", and the store with it";
  }
}

std::vector<Watchdog::Peer> Peers::seen_from_here() const {
  std::vector<Watchdog::Peer> seen;
  const auto& machine = peers_[static_cast<std::size_t>(rank_)].machine;
  for (const Peer& peer : peers_)
    seen.push_back({.node = peer.node, .pid = peer.machine == machine ? peer.pid : 0});
  return seen;
}

bool Peers::wait_for_count(const std::string& key, int count, std::chrono::seconds limit) {
  const auto end = steady_clock::now() + limit;
  while (store_->add(key, 0) < count) {
    if (steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kPollEvery);
  }
  return true;
}

void Peers::part() noexcept {
  try {
    store_->setTimeout(kStoreTimeout);
    store_->add("done", 1);
    wait_for_count("done", world_size_, kPartMax);
    store_->add("left", 1);
    if (rank_ == 0) wait_for_count("left", world_size_, kPartMax);  // it carries the store
  } catch (const std::exception&) {
    return;  // rank 0 is gone already: nobody waits for us any more
  }
}

}  // namespace tj::trainer
