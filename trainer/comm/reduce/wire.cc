#include "trainer/comm/reduce/wire.h"

#include <stdexcept>

namespace tj::trainer {

Wire::Round Wire::begin(int tag, const OfPeer& out, const OfPeer& in) {
  Round round(this);
  const std::scoped_lock lock(mutex_);
  if (is_stopped_) throw std::runtime_error("the reduction of gradients was stopped");
  for (int distance = 1; distance < world_size_; ++distance) {
    const int from = (rank_ + distance) % world_size_;
    const int to = (rank_ - distance + world_size_) % world_size_;
    std::vector<at::Tensor> outgoing{out(to)}, incoming{in(from)};
    if (incoming.front().numel() > 0) {
      round.receives_.push_back(backend_.recv(incoming, from, tag));
      waited_for_.insert(round.receives_.back());
    }
    if (outgoing.front().numel() > 0) {
      round.sends_.push_back(backend_.send(outgoing, to, tag));
      waited_for_.insert(round.sends_.back());
      bytes_sent_ += static_cast<std::int64_t>(outgoing.front().nbytes());
    }
  }
  return round;
}

void Wire::wait(std::vector<WorkPtr>& works) {
  for (auto& work : works) {
    const bool is_done = work->wait();
    {
      const std::scoped_lock lock(mutex_);
      waited_for_.erase(work);
    }
    if (!is_done) throw std::runtime_error("the reduction of gradients was stopped");
  }
  works.clear();
}

void Wire::stop() noexcept {
  const std::scoped_lock lock(mutex_);
  is_stopped_ = true;
  for (const auto& work : waited_for_) work->abort();
}

}  // namespace tj::trainer
