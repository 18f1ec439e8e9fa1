// One watch, from its request to its end: lines out of chunks, silence, and the pace of the loop.
#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <stdexcept>
#include <utility>

#include "operator/kube/http_thread.h"
#include "operator/kube/line_splitter.h"
#include "operator/kube/rest_connection.h"

namespace tj {
namespace {
namespace http = web::http;
using Clock = std::chrono::steady_clock;

/// A server ends a watch at timeoutSeconds; this much later the stream is ended here.
constexpr std::chrono::seconds kWatchGrace{15};
constexpr std::size_t kChunkBytes = 16 * 1024;  // a record of TLS; more does not come at once

/// On the HTTP thread, but for `cancelled_`, which the loop thread sets.
class RestStream : public std::enable_shared_from_this<RestStream> {
 public:
  RestStream(std::shared_ptr<RestConnection> connection, const WatchRequest& request,
             WatchHandler handler)
      : connection_(std::move(connection)),
        timeout_(request.timeout),
        call_(http_call(request)),
        subject_(connection_->subject(call_)),
        handler_(std::move(handler)),
        timer_(http_thread()),
        splitter_(connection_->options().line_bytes_max) {}

  void start() {
    connection_->began(&cancel_);
    ends_ = Clock::now() + timeout_ + kWatchGrace;
    expect_data();
    open();
  }

  /// On the loop thread.
  void cancel() {
    cancelled_ = true;
    boost::asio::post(http_thread(), [self = shared_from_this()] {
      self->end_quietly();
      self->cancel_.cancel();
    });
  }

 private:
  void open() {
    try {
      Result<http::http_request> prepared = connection_->prepare(call_, "", token_);
      if (!prepared) return finish(prepared.error());
      prepared->set_progress_handler(
          [self = shared_from_this()](auto, auto bytes) { self->check_unread(bytes); });
      connection_->watches()
          .request(*prepared, cancel_.get_token())
          .then([self = shared_from_this()](const pplx::task<http::http_response>& answer) {
            try {
              self->response_ = answer.get();
              self->opened();
            } catch (const std::exception& error) {
              self->fail(error);
            }
          });
    } catch (const std::exception& error) {
      fail(error);
    }
  }

  void opened() {
    if (response_.status_code() == 200) return read();
    response_.extract_vector().then(
        [self = shared_from_this()](const pplx::task<ResponseBytes>& body) {
          try {
            self->refused(text_of(body.get()));
          } catch (const std::exception& error) {
            self->fail(error);
          }
        });
  }

  void refused(std::string body) {
    const int status = response_.status_code();
    const bool renew = status == 401 && !retried_ && !finished_;
    if (renew && connection_->renew_token(token_)) {
      retried_ = true;
      read_bytes_ = 0;
      return open();
    }
    Result<std::string> answer = read_answer({.status = status,
                                              .body = std::move(body),
                                              .retry_after = header_of(response_, "Retry-After")},
                                             subject_);
    finish(
        answer
            ? Error{Code::internal, "HTTP " + std::to_string(status) + " to a watch", subject_, {}}
            : answer.error());
  }

  /// Waits for one byte, then takes what is there with it: a request for more would be answered
  /// only when all of it has come.
  void read() {
    if (finished_) return;
    try {
      response_.body()
          .streambuf()
          .getn(chunk_.data(), 1)
          .then([self = shared_from_this()](const pplx::task<std::size_t>& count) {
            try {
              self->received(count.get());
            } catch (const std::exception& error) {
              self->fail(error);
            }
          });
    } catch (const std::exception& error) {
      fail(error);
    }
  }

  void received(std::size_t count) {
    if (finished_) return;
    if (count == 0) return ended();
    auto buffer = response_.body().streambuf();
    const std::size_t waiting = std::min(buffer.in_avail(), chunk_.size() - 1);
    if (waiting > 0) count += buffer.getn(&chunk_[1], waiting).get();  // it is there: no wait
    read_bytes_ += count;
    expect_data();
    auto lines = splitter_.feed({reinterpret_cast<const char*>(chunk_.data()), count});
    if (splitter_.too_long()) {
      const auto bound = std::to_string(connection_->options().line_bytes_max);
      finish(Error{Code::internal, "an event is longer than " + bound + " bytes", subject_, {}});
      cancel_.cancel();
      return;
    }
    if (lines.empty()) return read();
    // The next chunk is read when the loop has taken these lines: a slow loop slows the stream.
    connection_->deliver([self = shared_from_this(), lines = std::move(lines)]() mutable {
      for (std::string& line : lines) {
        if (self->cancelled_) return;
        self->handler_.on_line(std::move(line));
      }
      boost::asio::post(http_thread(), [self] { self->read(); });
    });
  }

  /// No more data: an orderly end, unless the library knows of a failure.
  void ended() {
    response_.content_ready().then([self = shared_from_this()](
                                       const pplx::task<http::http_response>& whole) {
      try {
        whole.get();
        const Error cut{Code::unavailable, "the stream ended within an event", self->subject_, {}};
        self->finish(self->splitter_.inside_line() ? Result<void>(cut) : Result<void>());
      } catch (const std::exception& error) {
        self->fail(error);
      }
    });
  }

  /// The library goes on reading whether or not we keep up; beyond the bound the stream is given
  /// up.
  void check_unread(std::uint64_t bytes) {
    if (bytes > read_bytes_ + connection_->options().body_bytes_max) {
      throw std::length_error("more is waiting to be read than the bound allows");
    }
  }

  void expect_data() {
    const auto idle_ends = Clock::now() + connection_->options().watch_idle_max;
    timer_.expires_at(std::min(idle_ends, ends_));
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& stopped) {
      if (stopped || self->finished_) return;
      const auto idle = std::chrono::duration_cast<std::chrono::milliseconds>(
          self->connection_->options().watch_idle_max);
      const bool overdue = Clock::now() >= self->ends_;
      self->finish(Error{Code::timeout,
                         overdue ? "the stream did not end at its timeout"
                                 : "silent for " + std::to_string(idle.count()) + " ms",
                         self->subject_,
                         {}});
      self->cancel_.cancel();
    });
  }

  void fail(const std::exception& error) {
    if (!finished_) finish(connection_->failure(error, subject_));
  }

  void end_quietly() {
    finished_ = true;
    timer_.cancel();
    connection_->ended(&cancel_);
  }

  void finish(Result<void> end) {
    if (finished_) return;
    end_quietly();
    connection_->deliver([self = shared_from_this(), end = std::move(end)] {
      if (!self->cancelled_) self->handler_.on_end(end);
    });
  }

  const std::shared_ptr<RestConnection> connection_;
  const std::chrono::seconds timeout_;
  const HttpCall call_;
  const std::string subject_;
  const WatchHandler handler_;
  boost::asio::steady_timer timer_;
  Clock::time_point ends_{};
  pplx::cancellation_token_source cancel_;
  http::http_response response_;
  LineSplitter splitter_;
  ResponseBytes chunk_ = ResponseBytes(kChunkBytes);
  std::string token_;
  std::uint64_t read_bytes_ = 0;
  bool retried_ = false;
  bool finished_ = false;
  std::atomic<bool> cancelled_{false};
};

class StreamHandle final : public WatchStream {
 public:
  explicit StreamHandle(std::shared_ptr<RestStream> stream) : stream_(std::move(stream)) {}
  ~StreamHandle() override { stream_->cancel(); }

 private:
  std::shared_ptr<RestStream> stream_;
};

}  // namespace

std::unique_ptr<WatchStream> start_stream(std::shared_ptr<RestConnection> connection,
                                          const WatchRequest& request, WatchHandler handler) {
  auto stream = std::make_shared<RestStream>(std::move(connection), request, std::move(handler));
  boost::asio::post(http_thread(), [stream] { stream->start(); });
  return std::make_unique<StreamHandle>(std::move(stream));
}

}  // namespace tj
