// Ranks as threads of one process, whatever they speak to each other through. Includes torch.
#pragma once
#include <ATen/Parallel.h>
#include <torch/types.h>

#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace tj::trainer {

/// Calls `work` once for each rank, each in a thread of its own. The first exception goes on.
inline void on_rank_threads(int world_size, const std::function<void(int rank)>& work) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(world_size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        work(rank);
      } catch (...) {  // goes on in the test's thread
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  threads.clear();  // joins
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace tj::trainer
