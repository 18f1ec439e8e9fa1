// How far a backward pass has come: each gradient that is made is counted, and from the last one on
// the pass only waits for other ranks.
#pragma once
#include <memory>
#include <vector>

#include "trainer/watch/phase_clock.h"

namespace at {
class Tensor;
}

namespace tj::trainer {

class GradientWatch {
 public:
  /// Watches the gradients of `parameters`. Must come before those who reduce them, so that their
  /// work is not counted as this rank's. `clock` outlives it.
  GradientWatch(const std::vector<at::Tensor>& parameters, PhaseClock& clock);
  ~GradientWatch();

  /// One backward pass, which ends with the object. In one that reduces the gradients the wait for
  /// the other ranks is a collective.
  class Pass {
   public:
    Pass(GradientWatch& watch, bool reduces);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    /// From its beginning until the last gradient was made; 0: one is not made yet.
    double seconds_to_last_gradient() const;

   private:
    GradientWatch& watch_;
  };

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tj::trainer
