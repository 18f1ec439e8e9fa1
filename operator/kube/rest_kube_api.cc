#include "operator/kube/rest_kube_api.h"

#include <cpprest/http_client.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <set>
#include <stdexcept>

#include "operator/kube/http_thread.h"
#include "operator/kube/line_splitter.h"
#include "operator/kube/rest_request.h"
#include "operator/kube/tls_identity.h"
#include "operator/kube/token_source.h"

namespace tj {
namespace {
namespace http = web::http;
using Clock = std::chrono::steady_clock;
using Bytes = std::vector<unsigned char>;

/// The library's own timeouts only back up ours, which bound the whole request.
constexpr std::chrono::seconds kLibraryTimeout{3600};
/// A server ends a watch at timeoutSeconds; this much later the stream is ended here.
constexpr std::chrono::seconds kWatchGrace{15};
constexpr std::size_t kChunkBytes = 64 * 1024;

std::string text_of(const Bytes& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
std::string header_of(const http::http_response& response, const char* name) {
  const auto found = response.headers().find(name);
  return found == response.headers().end() ? std::string() : found->second;
}

}  // namespace

/// What all requests share. Lives on the HTTP thread, but for what the mutex guards.
class RestKubeApi::Shared : public std::enable_shared_from_this<Shared> {
 public:
  Shared(const KubeConfig& config, Post post, RestOptions options);

  /// From any thread: runs `function` on the loop thread, unless the client is closed by then.
  void deliver(std::function<void()> function);
  void close();
  bool closed() const { return closed_; }

  /// A request with all headers, or why there can be none. `token` is what it carries.
  Result<http::http_request> prepare(const HttpCall& call, const std::string& body,
                                     std::string& token);
  std::string subject(const HttpCall& call) const {
    return call.method + (" " + server_) + call.target;
  }
  Error failure(const std::exception& error, const std::string& about) {
    return http_failure(error, identity_ ? identity_->take_refusal() : "", about);
  }

  const RestOptions options_;
  TokenSource token_;
  std::unique_ptr<http::client::http_client> requests_;
  std::unique_ptr<http::client::http_client>
      watches_;  // so that a long stream never holds up a request
  std::set<pplx::cancellation_token_source*> under_way_;

 private:
  std::string server_;
  std::string tls_server_name_;
  std::shared_ptr<TlsIdentity> identity_;
  std::optional<Error> unusable_;

  std::mutex mutex_;  // guards post_
  Post post_;         // empty once closed
  std::atomic<bool> closed_{false};
};

RestKubeApi::Shared::Shared(const KubeConfig& config, Post post, RestOptions options)
    : options_(std::move(options)),
      token_(config.token, config.token_file),
      server_(config.server),
      tls_server_name_(config.tls_server_name),
      post_(std::move(post)) {
  while (server_.ends_with('/')) server_.pop_back();
  Result<std::shared_ptr<TlsIdentity>> identity = TlsIdentity::load(config);
  if (!identity) {
    unusable_ = identity.error();
    return;
  }
  identity_ = *identity;
  http::client::http_client_config library;
  library.set_timeout(kLibraryTimeout);
  library.set_max_redirects(0);
  library.set_validate_certificates(true);
  library.set_ssl_context_callback([shared = identity_](boost::asio::ssl::context& context) {
    shared->apply(context.native_handle());
  });
  try {
    requests_ = std::make_unique<http::client::http_client>(web::uri(server_), library);
    watches_ = std::make_unique<http::client::http_client>(web::uri(server_), library);
  } catch (const std::exception& error) {
    unusable_ =
        Error{Code::invalid, std::string("is no URL of a server: ") + error.what(), server_, {}};
  }
}

void RestKubeApi::Shared::deliver(std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  if (!post_) return;
  post_([self = shared_from_this(), function = std::move(function)] {
    if (!self->closed_) function();
  });
}

void RestKubeApi::Shared::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    post_ = nullptr;
  }
  boost::asio::post(http_thread(), [self = shared_from_this()] {
    // Cancelling may complete a request at once, which takes it out of the set.
    const auto under_way = self->under_way_;
    for (pplx::cancellation_token_source* source : under_way) {
      if (self->under_way_.contains(source)) source->cancel();
    }
  });
}

Result<http::http_request> RestKubeApi::Shared::prepare(const HttpCall& call,
                                                        const std::string& body,
                                                        std::string& token) {
  if (unusable_) return *unusable_;
  Result<std::string> current = token_.current(Clock::now());
  if (!current) return current.error();
  token = *current;
  http::http_request request(call.method);
  request.set_request_uri(call.target);
  auto& headers = request.headers();
  headers.add("Accept", "application/json");
  headers.add("User-Agent", options_.user_agent);
  if (!token.empty()) headers.add("Authorization", "Bearer " + token);
  // The library takes the name to verify, and SNI, from this header where it is given.
  if (!tls_server_name_.empty()) headers.add("Host", tls_server_name_);
  if (!body.empty()) request.set_body(body, call.content_type);
  return request;
}

/// One request from send() to its callback. On the HTTP thread, but for its construction.
class RestKubeApi::Call : public std::enable_shared_from_this<Call> {
 public:
  Call(std::shared_ptr<Shared> shared, Request request, Done done)
      : shared_(std::move(shared)),
        request_(std::move(request)),
        call_(http_call(request_)),
        subject_(shared_->subject(call_)),
        done_(std::move(done)),
        deadline_(http_thread()) {}

  void start() {
    shared_->under_way_.insert(&cancel_);
    deadline_.expires_at(started_ + request_.deadline);
    deadline_.async_wait([self = shared_from_this()](const boost::system::error_code& stopped) {
      if (!stopped) self->give_up();
    });
    attempt();
  }

 private:
  void attempt() {
    try {
      Result<http::http_request> prepared = shared_->prepare(call_, request_.body, token_);
      if (!prepared) return finish(prepared.error(), to_string(prepared.error().code));
      prepared->set_progress_handler([self = shared_from_this()](auto direction, auto bytes) {
        if (direction == http::message_direction::download) self->check_size(bytes);
      });
      shared_->requests_->request(*prepared, cancel_.get_token())
          .then([self = shared_from_this()](http::http_response response) {
            self->answer_.status = response.status_code();
            self->answer_.retry_after = header_of(response, "Retry-After");
            return response.extract_vector();
          })
          .then([self = shared_from_this()](const pplx::task<Bytes>& body) {
            try {
              self->answered(text_of(body.get()));
            } catch (const std::exception& error) {
              self->fail(error);
            }
          });
    } catch (const std::exception& error) {
      fail(error);
    }
  }

  void check_size(std::uint64_t bytes) {
    received_ = bytes;
    too_large_ = bytes > shared_->options_.body_bytes_max;
    if (too_large_) throw std::length_error("the answer is too large");
  }

  void answered(std::string body) {
    const bool refused = answer_.status == 401 && !retried_ && !finished_;
    if (refused && shared_->token_.refresh(token_, Clock::now())) {
      retried_ = true;
      return attempt();
    }
    const std::string code = std::to_string(answer_.status);
    answer_.body = std::move(body);
    finish(read_answer(std::move(answer_), subject_), code);
  }

  void fail(const std::exception& error) {
    if (finished_) return;
    if (too_large_) {
      const auto bound = std::to_string(shared_->options_.body_bytes_max);
      return finish(
          Error{Code::internal, "the answer is larger than " + bound + " bytes", subject_, {}},
          to_string(Code::internal));
    }
    Error failure = shared_->failure(error, subject_);
    const std::string code = to_string(failure.code);
    finish(std::move(failure), code);
  }

  void give_up() {
    const std::string so_far = answer_.status == 0
                                   ? "no answer"
                                   : "only " + std::to_string(received_) + " bytes of the answer";
    finish(Error{Code::timeout,
                 so_far + " within " + std::to_string(request_.deadline.count()) + " ms",
                 subject_,
                 {}},
           to_string(Code::timeout));
    cancel_.cancel();
  }

  void finish(Result<std::string> result, std::string code) {
    if (std::exchange(finished_, true)) return;
    deadline_.cancel();
    shared_->under_way_.erase(&cancel_);
    shared_->deliver(
        [self = shared_from_this(), result = std::move(result), code = std::move(code)]() mutable {
          const auto& observe = self->shared_->options_.observe;
          if (observe) {
            observe({self->request_.verb, self->request_.resource, code,
                     Clock::now() - self->started_});
          }
          self->done_(std::move(result));
        });
  }

  const std::shared_ptr<Shared> shared_;
  const Request request_;
  const HttpCall call_;
  const std::string subject_;
  const Done done_;
  const Clock::time_point started_ = Clock::now();
  boost::asio::steady_timer deadline_;
  pplx::cancellation_token_source cancel_;
  std::string token_;
  HttpAnswer answer_;
  std::uint64_t received_ = 0;
  bool too_large_ = false;
  bool retried_ = false;
  bool finished_ = false;
};

/// One watch. On the HTTP thread, but for `cancelled_`, which the loop thread sets.
class RestKubeApi::Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<Shared> shared, const WatchRequest& request, WatchHandler handler)
      : shared_(std::move(shared)),
        timeout_(request.timeout),
        call_(http_call(request)),
        subject_(shared_->subject(call_)),
        handler_(std::move(handler)),
        timer_(http_thread()),
        splitter_(shared_->options_.line_bytes_max) {}

  void start() {
    shared_->under_way_.insert(&cancel_);
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
      Result<http::http_request> prepared = shared_->prepare(call_, "", token_);
      if (!prepared) return finish(prepared.error());
      prepared->set_progress_handler(
          [self = shared_from_this()](auto, auto bytes) { self->check_unread(bytes); });
      shared_->watches_->request(*prepared, cancel_.get_token())
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
    response_.extract_vector().then([self = shared_from_this()](const pplx::task<Bytes>& body) {
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
    if (renew && shared_->token_.refresh(token_, Clock::now())) {
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
      const auto bound = std::to_string(shared_->options_.line_bytes_max);
      finish(Error{Code::internal, "an event is longer than " + bound + " bytes", subject_, {}});
      cancel_.cancel();
      return;
    }
    if (lines.empty()) return read();
    // The next chunk is read when the loop has taken these lines: a slow loop slows the stream.
    shared_->deliver([self = shared_from_this(), lines = std::move(lines)]() mutable {
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
    if (bytes > read_bytes_ + shared_->options_.body_bytes_max) {
      throw std::length_error("more is waiting to be read than the bound allows");
    }
  }

  void expect_data() {
    const auto idle_ends = Clock::now() + shared_->options_.watch_idle_max;
    timer_.expires_at(std::min(idle_ends, ends_));
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& stopped) {
      if (stopped || self->finished_) return;
      const auto idle = std::chrono::duration_cast<std::chrono::milliseconds>(
          self->shared_->options_.watch_idle_max);
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
    if (!finished_) finish(shared_->failure(error, subject_));
  }

  void end_quietly() {
    finished_ = true;
    timer_.cancel();
    shared_->under_way_.erase(&cancel_);
  }

  void finish(Result<void> end) {
    if (finished_) return;
    end_quietly();
    shared_->deliver([self = shared_from_this(), end = std::move(end)] {
      if (!self->cancelled_) self->handler_.on_end(end);
    });
  }

  const std::shared_ptr<Shared> shared_;
  const std::chrono::seconds timeout_;
  const HttpCall call_;
  const std::string subject_;
  const WatchHandler handler_;
  boost::asio::steady_timer timer_;
  Clock::time_point ends_{};
  pplx::cancellation_token_source cancel_;
  http::http_response response_;
  LineSplitter splitter_;
  Bytes chunk_ = Bytes(kChunkBytes);
  std::string token_;
  std::uint64_t read_bytes_ = 0;
  bool retried_ = false;
  bool finished_ = false;
  std::atomic<bool> cancelled_{false};
};

class RestKubeApi::StreamHandle final : public WatchStream {
 public:
  explicit StreamHandle(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~StreamHandle() override { stream_->cancel(); }

 private:
  std::shared_ptr<Stream> stream_;
};

RestKubeApi::RestKubeApi(const KubeConfig& config, Post post, RestOptions options) {
  keep_system_authorities_out();
  http_thread();
  shared_ = std::make_shared<Shared>(config, std::move(post), std::move(options));
}

RestKubeApi::~RestKubeApi() { shared_->close(); }

void RestKubeApi::send(Request request, Done done) {
  auto call = std::make_shared<Call>(shared_, std::move(request), std::move(done));
  boost::asio::post(http_thread(), [call = std::move(call)] { call->start(); });
}

std::unique_ptr<WatchStream> RestKubeApi::watch(WatchRequest request, WatchHandler handler) {
  auto stream = std::make_shared<Stream>(shared_, request, std::move(handler));
  boost::asio::post(http_thread(), [stream] { stream->start(); });
  return std::make_unique<StreamHandle>(std::move(stream));
}

}  // namespace tj
