// GET http://<ip>:<port>/progress, one connection each, on the loop's own thread. The other side is
// anybody's program: time, headers and body are bounded, redirects are not followed, and nothing of
// an answer that is no progress document is kept.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>

#include "operator/loop/progress_source.h"

namespace tj {

class HttpProgressSource final : public ProgressSource {
 public:
  /// From the first packet to the last, however slowly they come.
  static constexpr std::chrono::milliseconds kExchangeMax{3'000};
  static constexpr unsigned kHeaderBytesMax = 4 * 1024;

  explicit HttpProgressSource(boost::asio::io_context& loop,
                              std::chrono::milliseconds exchange_max = kExchangeMax)
      : loop_(loop), exchange_max_(exchange_max) {}
  void fetch(const ProgressTarget& target, Done done) override;

 private:
  boost::asio::io_context& loop_;
  std::chrono::milliseconds exchange_max_;
};

}  // namespace tj
