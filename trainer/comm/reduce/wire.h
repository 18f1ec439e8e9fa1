// Bytes between the ranks while backward computes: sends and receives over Gloo on whatever thread,
// which end at once when the run does. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "trainer/comm/communicator.h"

namespace tj::trainer {

class Wire {
 public:
  /// `backend` sends and receives tensors of the CPU, and outlives it.
  Wire(c10d::Backend& backend, int rank, int world_size)
      : backend_(backend), rank_(rank), world_size_(world_size) {}

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }

  /// One message to each other rank and one from each, which have begun.
  class Round {
   public:
    Round() = default;
    Round(Wire* wire) : wire_(wire) {}
    /// Throw what Gloo throws, or that the wire was stopped.
    void wait_received() { wire_->wait(receives_); }
    void wait_sent() { wire_->wait(sends_); }

   private:
    friend class Wire;
    Wire* wire_ = nullptr;
    std::vector<c10::intrusive_ptr<c10d::Work>> receives_, sends_;
  };
  using OfPeer = std::function<at::Tensor(int peer)>;
  /// `tag` is the same on all ranks, and of no other round that is under way. Empty tensors are not
  /// sent; both ranks know of it.
  Round begin(int tag, const OfPeer& out, const OfPeer& in);

  /// Whatever waits ends with an error, and so does all that begins afterwards.
  void stop() noexcept;

  /// `elements` of a gradient, or of its factors, are sent in the next bytes: for the record.
  void count_elements(std::int64_t elements) { elements_sent_ += elements; }
  CommVolume volume() const {
    return {.elements_sent = elements_sent_.load(), .bytes_sent = bytes_sent_.load()};
  }

 private:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  void wait(std::vector<WorkPtr>& works);

  c10d::Backend& backend_;
  const int rank_;
  const int world_size_;
  std::atomic<std::int64_t> elements_sent_ = 0;
  std::atomic<std::int64_t> bytes_sent_ = 0;
  std::mutex mutex_;  // guards the rest, and that two threads do not begin at once
  bool is_stopped_ = false;
  std::set<WorkPtr> waited_for_;
};

}  // namespace tj::trainer
