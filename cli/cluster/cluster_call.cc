// One request, from send() to its callback: its deadline, the bound of its answer, one repetition
// after a 401 with renewed credentials, and one on a new connection where a kept one was dead.
#include "cli/cluster/cluster_call.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace tj {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Parser = http::response_parser<http::string_body>;

class ClusterCall : public std::enable_shared_from_this<ClusterCall> {
 public:
  ClusterCall(std::shared_ptr<ClusterLink> link, Request request, KubeApi::Done done,
              std::function<void()> ended)
      : link_(std::move(link)),
        request_(std::move(request)),
        call_(http_call(request_)),
        subject_(link_->subject(call_)),
        done_(std::move(done)),
        ended_(std::move(ended)),
        deadline_(link_->loop()) {}

  void start() {
    link_->began(&interrupt_);
    start_on(link_->loop(), [self = shared_from_this()] { return self->run(self); });
  }

 private:
  asio::awaitable<void> run(std::shared_ptr<ClusterCall>) {
    bool again = !link_->closed();
    while (again && !finished_) again = co_await attempt();
    if (!finished_) finish(Error{Code::unavailable, "the client is closed", subject_, {}}, "");
  }

  /// True when another one is to follow.
  asio::awaitable<bool> attempt() {
    Result<Authority> authority = link_->authority();
    if (!authority) {
      finish(authority.error(), to_string(authority.error().code));
      co_return false;
    }
    expect_answer();
    std::unique_ptr<Connection> connection = link_->take_idle(*authority);
    const bool is_kept = connection != nullptr;
    if (is_kept) {
      close_with(interrupt_, *connection);
    } else {
      Result<std::unique_ptr<Connection>> made = co_await link_->connect(*authority, interrupt_);
      if (!made) {
        Error why = made.error();
        why.subject = subject_;
        finish(why, to_string(why.code));
        co_return false;
      }
      connection = std::move(*made);
    }
    const error_code failed = co_await exchange(*connection, *authority);
    interrupt_.set(nullptr);
    const bool may_repeat = is_kept && request_.verb == Verb::get && !parser_->got_some();
    if (failed && may_repeat && !interrupt_.fired()) co_return true;
    if (failed) {
      fail(failed);
      co_return false;
    }
    HttpAnswer answer = take_answer();
    if (parser_->keep_alive()) link_->give_back(std::move(connection));
    const bool is_refused = answer.status == 401 && !retried_ && !finished_;
    if (is_refused && link_->renew(*authority)) {
      retried_ = true;
      co_return true;
    }
    const std::string code = std::to_string(answer.status);
    finish(read_answer(std::move(answer), subject_), code);
    co_return false;
  }

  asio::awaitable<error_code> exchange(Connection& connection, const Authority& authority) {
    const HttpRequest request = link_->request(call_, request_.body, authority);
    parser_.emplace();
    parser_->header_limit(kHeaderBytesMax);
    parser_->body_limit(link_->options().body_bytes_max);
    error_code failed;
    http::request_serializer<http::string_body> serializer(request);
    co_await http::async_write(connection.stream, serializer,
                               asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return failed;
    co_await http::async_read_header(connection.stream, connection.buffer, *parser_,
                                     asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return failed;
    // Beast 1.74 does not stop at a length that is beyond the limit.
    if (parser_->content_length().value_or(0) > link_->options().body_bytes_max)
      co_return http::error::body_limit;
    co_await http::async_read(connection.stream, connection.buffer, *parser_,
                              asio::redirect_error(asio::use_awaitable, failed));
    co_return failed;
  }

  HttpAnswer take_answer() {
    auto& message = parser_->get();
    return {.status = static_cast<int>(message.result_int()),
            .body = std::move(message.body()),
            .retry_after = std::string(message[http::field::retry_after])};
  }

  void fail(const error_code& failed) {
    if (failed == http::error::body_limit) {
      const auto bound = std::to_string(link_->options().body_bytes_max);
      return finish(
          Error{Code::internal, "the answer is larger than " + bound + " bytes", subject_, {}},
          to_string(Code::internal));
    }
    finish(Error{Code::unavailable, broken_text(failed), subject_, {}},
           to_string(Code::unavailable));
  }

  /// The time that a log-in takes is not the server's.
  void expect_answer() {
    if (std::exchange(is_timed_, true)) return;
    deadline_.expires_after(request_.deadline);
    deadline_.async_wait([self = shared_from_this()](const error_code& stopped) {
      if (!stopped) self->give_up();
    });
  }

  void give_up() {
    const bool has_begun = parser_ && parser_->is_header_done();
    const std::string so_far =
        has_begun ? "only " + std::to_string(parser_->get().body().size()) + " bytes of the answer"
                  : "no answer";
    finish(Error{Code::timeout,
                 so_far + " within " + std::to_string(request_.deadline.count()) + " ms",
                 subject_,
                 {}},
           to_string(Code::timeout));
    interrupt_.fire();
  }

  void finish(Result<std::string> result, std::string code) {
    if (std::exchange(finished_, true)) return;
    deadline_.cancel();
    link_->ended(&interrupt_);
    link_->deliver(
        [self = shared_from_this(), result = std::move(result), code = std::move(code)]() mutable {
          self->ended_();
          const auto& observe = self->link_->options().observe;
          if (observe) {
            observe({self->request_.verb, self->request_.resource, code,
                     Clock::now() - self->started_});
          }
          self->done_(std::move(result));
        });
  }

  const std::shared_ptr<ClusterLink> link_;
  const Request request_;
  const HttpCall call_;
  const std::string subject_;
  const KubeApi::Done done_;
  const std::function<void()> ended_;
  const Clock::time_point started_ = Clock::now();
  asio::steady_timer deadline_;
  Interrupt interrupt_;
  std::optional<Parser> parser_;
  bool is_timed_ = false;
  bool retried_ = false;
  bool finished_ = false;
};

}  // namespace

void start_call(std::shared_ptr<ClusterLink> link, Request request, KubeApi::Done done,
                std::function<void()> ended) {
  std::make_shared<ClusterCall>(std::move(link), std::move(request), std::move(done),
                                std::move(ended))
      ->start();
}

}  // namespace tj
