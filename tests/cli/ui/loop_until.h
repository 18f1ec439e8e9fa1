// Turns a loop until something is so, or ten seconds are over.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>

namespace tj::ui {

inline constexpr std::chrono::seconds kDeadline{10};

/// Whether it is so.
template <typename Condition>
bool loop_until(boost::asio::io_context& loop, const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (!condition() && std::chrono::steady_clock::now() < end) {
    loop.restart();
    loop.run_one_for(std::chrono::milliseconds(20));
  }
  return condition();
}

}  // namespace tj::ui
