// One watch or log, from its request to its end: lines out of chunks, silence, and the pace of the
// one who takes them.
#include <algorithm>
#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <limits>
#include <utility>

#include "cli/cluster/cluster_call.h"
#include "operator/kube/line_splitter.h"

namespace tj {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Parser = http::response_parser<http::buffer_body>;

/// A server ends a watch at timeoutSeconds; this much later the stream is ended here.
constexpr std::chrono::seconds kWatchGrace{15};
constexpr std::size_t kChunkBytes = 16 * 1024;       // a record of TLS; more does not come at once
constexpr std::size_t kRefusalBytesMax = 64 * 1024;  // of an answer that is no stream
constexpr std::size_t kLogPieceBytesMax = 1024 * 1024;  // a longer line of a log comes in pieces

class ClusterStream : public std::enable_shared_from_this<ClusterStream> {
 public:
  ClusterStream(std::shared_ptr<ClusterLink> link, const WatchRequest& request,
                WatchHandler handler)
      : link_(std::move(link)),
        is_log_(request.log.has_value()),
        timeout_(request.timeout),
        call_(http_call(request)),
        subject_(link_->subject(call_)),
        handler_(std::move(handler)),
        timer_(link_->loop()),
        splitter_(is_log_ ? kLogPieceBytesMax : link_->options().line_bytes_max,
                  is_log_ ? LineSplitter::Kind::text : LineSplitter::Kind::events) {}

  void start() {
    link_->began(&interrupt_);
    start_on(link_->loop(), [self = shared_from_this()] { return self->run(self); });
  }

  /// The handle is gone: nothing is told any more.
  void cancel() {
    is_gone_ = true;
    end_quietly();
    interrupt_.fire();
  }

 private:
  asio::awaitable<void> run(std::shared_ptr<ClusterStream>) {
    bool again = true;
    while (again && !finished_) again = co_await attempt();
  }

  /// True when another one is to follow.
  asio::awaitable<bool> attempt() {
    authority_ = link_->authority();
    if (!authority_) {
      finish(authority_.error());
      co_return false;
    }
    if (ends_ == Clock::time_point()) ends_ = Clock::now() + timeout_ + kWatchGrace;
    expect_data();
    Result<std::unique_ptr<Connection>> made = co_await link_->connect(*authority_, interrupt_);
    if (!made) {
      Error why = made.error();
      why.subject = subject_;
      finish(why);
      co_return false;
    }
    const std::unique_ptr<Connection> connection = std::move(*made);
    const bool again = co_await converse(*connection);
    interrupt_.set(nullptr);
    co_return again;
  }

  asio::awaitable<bool> converse(Connection& connection) {
    HttpRequest request = link_->request(call_, "", *authority_);
    Parser parser;
    parser.header_limit(kHeaderBytesMax);
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());  // of a chunk, too
    connection.buffer.reserve(kChunkBytes);
    error_code failed;
    http::request_serializer<http::string_body> serializer(request);
    co_await http::async_write(connection.stream, serializer,
                               asio::redirect_error(asio::use_awaitable, failed));
    if (!failed) {
      co_await http::async_read_header(connection.stream, connection.buffer, parser,
                                       asio::redirect_error(asio::use_awaitable, failed));
    }
    if (failed) {
      finish(broken(failed));
      co_return false;
    }
    const bool is_stream = parser.get().result_int() == 200;
    if (!is_stream) {
      const bool again = co_await refused(connection, parser);
      co_return again;
    }
    co_await follow(connection, parser);
    co_return false;
  }

  /// Reads what comes next of the body into `chunk_`; its size is 0 at an end that is in order.
  asio::awaitable<error_code> read(Connection& connection, Parser& parser) {
    chunk_size_ = 0;
    error_code failed;
    while (chunk_size_ == 0 && !parser.is_done() && !failed) {
      auto& body = parser.get().body();
      body.data = chunk_.data();
      body.size = chunk_.size();
      co_await http::async_read_some(connection.stream, connection.buffer, parser,
                                     asio::redirect_error(asio::use_awaitable, failed));
      if (failed == http::error::need_buffer) failed = {};
      chunk_size_ = chunk_.size() - body.size;
    }
    co_return failed;
  }

  asio::awaitable<void> follow(Connection& connection, Parser& parser) {
    while (!finished_) {
      const error_code failed = co_await read(connection, parser);
      if (finished_ || link_->closed()) co_return;
      if (chunk_size_ > 0 && !take_chunk()) co_return;
      if (failed) co_return finish(broken(failed));
      if (chunk_size_ == 0) co_return finish_in_order();
    }
  }

  /// False when nothing more is to come.
  bool take_chunk() {
    expect_data();
    auto lines = splitter_.feed({chunk_.data(), chunk_size_});
    for (std::string& line : lines) {
      if (finished_) return false;
      handler_.on_line(std::move(line));
    }
    if (!splitter_.too_long() || finished_) return !finished_;
    const auto bound = std::to_string(link_->options().line_bytes_max);
    finish(Error{Code::internal, "an event is longer than " + bound + " bytes", subject_, {}});
    return false;
  }

  void finish_in_order() {
    if (splitter_.inside_line() && is_log_) handler_.on_line(splitter_.take_rest());
    if (!splitter_.inside_line()) return finish({});
    finish(Error{Code::unavailable, "the stream ended within an event", subject_, {}});
  }

  /// Another status than 200: true when credentials were renewed.
  asio::awaitable<bool> refused(Connection& connection, Parser& parser) {
    HttpAnswer answer{.status = static_cast<int>(parser.get().result_int()),
                      .body = {},
                      .retry_after = std::string(parser.get()[http::field::retry_after])};
    error_code failed;
    do {
      failed = co_await read(connection, parser);
      answer.body.append(chunk_.data(), chunk_size_);
    } while (!failed && chunk_size_ > 0 && answer.body.size() < kRefusalBytesMax);
    if (finished_) co_return false;
    if (answer.status == 401 && !retried_ && link_->renew(*authority_)) {
      retried_ = true;
      co_return true;
    }
    const std::string number = std::to_string(answer.status);
    const Result<std::string> read_as = read_answer(std::move(answer), subject_);
    finish(read_as ? Error{Code::internal, "HTTP " + number + " to a watch", subject_, {}}
                   : read_as.error());
    co_return false;
  }

  /// A log may be silent for as long as its program is; a dead peer is TCP's to notice.
  void expect_data() {
    const auto idle_max = link_->options().watch_idle_max;
    const auto idle_ends = Clock::now() + idle_max;
    expires_ = is_log_ ? ends_ : std::min(idle_ends, ends_);
    if (std::exchange(is_waiting_, true)) return;  // looks again by itself
    wait();
  }

  void wait() {
    timer_.expires_at(expires_);
    timer_.async_wait([self = shared_from_this()](const error_code& stopped) {
      if (stopped || self->finished_) return;
      if (Clock::now() < self->expires_) return self->wait();
      const auto idle = std::chrono::duration_cast<std::chrono::milliseconds>(
          self->link_->options().watch_idle_max);
      const bool overdue = Clock::now() >= self->ends_;
      self->finish(Error{Code::timeout,
                         overdue ? "the stream did not end at its timeout"
                                 : "silent for " + std::to_string(idle.count()) + " ms",
                         self->subject_,
                         {}});
      self->interrupt_.fire();
    });
  }

  Error broken(const error_code& failed) const {
    return Error{Code::unavailable, broken_text(failed), subject_, {}};
  }

  void end_quietly() {
    finished_ = true;
    timer_.cancel();
    link_->ended(&interrupt_);
  }

  void finish(Result<void> end) {
    if (finished_) return;
    end_quietly();
    link_->deliver([self = shared_from_this(), end = std::move(end)] {
      if (!self->is_gone_) self->handler_.on_end(end);
    });
  }

  const std::shared_ptr<ClusterLink> link_;
  const bool is_log_;
  const std::chrono::seconds timeout_;
  const HttpCall call_;
  const std::string subject_;
  const WatchHandler handler_;
  asio::steady_timer timer_;
  Clock::time_point ends_{};
  Clock::time_point expires_{};
  Interrupt interrupt_;
  Result<Authority> authority_ = Error{};
  LineSplitter splitter_;
  std::array<char, kChunkBytes> chunk_{};
  std::size_t chunk_size_ = 0;
  bool is_waiting_ = false;
  bool retried_ = false;
  bool finished_ = false;
  bool is_gone_ = false;
};

class StreamHandle final : public WatchStream {
 public:
  explicit StreamHandle(std::shared_ptr<ClusterStream> stream) : stream_(std::move(stream)) {}
  ~StreamHandle() override { stream_->cancel(); }

 private:
  std::shared_ptr<ClusterStream> stream_;
};

}  // namespace

std::unique_ptr<WatchStream> start_stream(std::shared_ptr<ClusterLink> link,
                                          const WatchRequest& request, WatchHandler handler) {
  auto stream = std::make_shared<ClusterStream>(std::move(link), request, std::move(handler));
  stream->start();
  return std::make_unique<StreamHandle>(std::move(stream));
}

}  // namespace tj
