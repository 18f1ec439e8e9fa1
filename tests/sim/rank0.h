// Rank 0 of every job, as an operator reaches it: it says how it is doing, stands still, talks
// nonsense or is not to be reached, as drawn. In calm weather it is well and says the same again.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "operator/loop/progress_source.h"
#include "tests/sim/dice.h"
#include "tests/sim/weather.h"

namespace tj::sim {

class Rank0 final : public ProgressSource {
 public:
  Rank0(boost::asio::io_context& loop, Dice& dice, const Weather& weather)
      : loop_(loop), dice_(dice), weather_(weather) {}

  void fetch(const ProgressTarget&, Done done) override {
    boost::asio::post(loop_, [done = std::move(done), answer = draw()] { done(answer); });
  }

 private:
  PollAnswer draw() {
    Progress document;
    document.step = 1;
    if (!dice_.percent(weather_.hangs)) {
      if (weather_.hangs > 0) document.step = dice_.between(0, 100);
      return {PollResult::read, document};
    }
    constexpr PollResult kResults[] = {PollResult::refused, PollResult::unreachable,
                                       PollResult::no_answer, PollResult::invalid};
    if (dice_.percent(50)) return {dice_.pick(kResults), {}};
    document.heartbeat_age_seconds = dice_.between(0, 500);
    document.stalled.push_back({dice_.between(-1, 9), "n0", "step", 1.0});
    if (dice_.percent(50)) document.last_checkpoint = SavedStep{dice_.between(0, 100), "/out"};
    return {PollResult::read, document};
  }

  boost::asio::io_context& loop_;
  Dice& dice_;
  const Weather& weather_;
};

}  // namespace tj::sim
