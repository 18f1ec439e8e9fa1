// Who the other ranks are, and which of them is gone when a collective fails. Best effort, in
// seconds.
#pragma once
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "trainer/watch/peer_failure.h"
#include "trainer/watch/watchdog.h"

namespace tj::trainer {

class Peers {
 public:
  /// `peer_failure` is that of the watchdog, too.
  Peers(c10::intrusive_ptr<c10d::Store> store, int rank, int world_size,
        std::shared_ptr<KnownPeerFailure> peer_failure);
  /// What a rank tells the others about itself.
  struct Introduction {
    std::string node;
    std::string address;
    std::string device;     // "cuda" or "cpu"
    std::string transport;  // of NCCL: kEthernet or kVerbs of network.h; empty on a CPU
    std::string why;        // of the device, in words
    std::string card;       // equal for ranks on the same GPU; empty on a CPU
  };
  void introduce(const Introduction& self);
  /// Reads what the others have published; all must have introduced themselves.
  void learn();

  /// In what the ranks differ though they must not: empty, or a sentence that names them all. The
  /// same on every rank.
  std::string describe_differences() const;
  /// Who would share a GPU, which NCCL does not allow: empty, or a sentence that names them. The
  /// same on every rank.
  std::string describe_shared_gpu() const;

  std::string named(int rank) const;
  /// "rank 2 on node b was lost, in phase step after step 12: connection closed by peer", after a
  /// collective of this rank failed with `cause` where its clock was. Never throws.
  std::string describe_failure(const std::string& cause, const Seen& seen) noexcept;
  /// By rank, for the watchdog.
  std::vector<Watchdog::Peer> seen_from_here() const;
  /// Meets the others for the last time: returns when all have come, or after a bound. Never
  /// throws.
  void part() noexcept;

 private:
  struct Peer {
    std::string machine;  // ranks with the same can see each other's processes
    std::string node;
    std::string address;
    std::string device;
    std::string transport;
    std::string why;
    std::string card;
    int pid = 0;
  };
  PeerFailure describe_lost(const std::string& cause, const Seen& seen) const;
  std::optional<int> find_lost(const std::string& cause) const;
  bool wait_for_count(const std::string& key, int count, std::chrono::seconds limit);

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int world_size_;
  std::shared_ptr<KnownPeerFailure> peer_failure_;
  std::vector<Peer> peers_;
};

}  // namespace tj::trainer
