#include "operator/loop/batch.h"

#include <algorithm>
#include <memory>

#include "contract/result.h"

namespace tj {
namespace {

/// Kept alive by the answers it waits for: when those are dropped, so is it.
class Batch : public std::enable_shared_from_this<Batch> {
 public:
  Batch(const BatchSize& size, StartOne start, std::function<void()> all_done)
      : size_(size),
        start_(std::move(start)),
        all_done_(std::move(all_done)),
        width_(size.width_first) {}

  void fill() {
    if (filling_) return;  // an answer that came at once: the loop below goes on
    filling_ = true;
    while (!failed_ && next_ < size_.count && in_flight_ < width_) {
      ++in_flight_;
      start_(next_++, [self = shared_from_this()](bool ok) { self->ended(ok); });
    }
    filling_ = false;
    const bool nothing_left = failed_ || next_ == size_.count;
    if (in_flight_ == 0 && nothing_left) all_done_();
  }

 private:
  void ended(bool ok) {
    --in_flight_;
    if (!ok) failed_ = true;
    if (ok) width_ = std::min(width_ + 1, size_.width_max);
    fill();
  }

  BatchSize size_;
  StartOne start_;
  std::function<void()> all_done_;
  std::size_t width_;
  std::size_t next_ = 0;
  std::size_t in_flight_ = 0;
  bool failed_ = false;
  bool filling_ = false;
};

}  // namespace

void run_batch(const BatchSize& size, StartOne start, std::function<void()> all_done) {
  TJ_CHECK(size.width_first >= 1 && size.width_first <= size.width_max, "no request would start");
  std::make_shared<Batch>(size, std::move(start), std::move(all_done))->fill();
}

}  // namespace tj
