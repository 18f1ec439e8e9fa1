// One request, from send() to its callback: its deadline, the bound of its answer, and one
// repetition after a 401 with a renewed token.
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <stdexcept>
#include <utility>

#include "operator/kube/http_thread.h"
#include "operator/kube/rest_connection.h"

namespace tj {
namespace {
namespace http = web::http;
using Clock = std::chrono::steady_clock;

/// On the HTTP thread, but for its construction.
class RestCall : public std::enable_shared_from_this<RestCall> {
 public:
  RestCall(std::shared_ptr<RestConnection> connection, Request request, KubeApi::Done done)
      : connection_(std::move(connection)),
        request_(std::move(request)),
        call_(http_call(request_)),
        subject_(connection_->subject(call_)),
        done_(std::move(done)),
        deadline_(http_thread()) {}

  void start() {
    connection_->began(&cancel_);
    deadline_.expires_at(started_ + request_.deadline);
    deadline_.async_wait([self = shared_from_this()](const boost::system::error_code& stopped) {
      if (!stopped) self->give_up();
    });
    attempt();
  }

 private:
  void attempt() {
    try {
      Result<http::http_request> prepared = connection_->prepare(call_, request_.body, token_);
      if (!prepared) return finish(prepared.error(), to_string(prepared.error().code));
      prepared->set_progress_handler([self = shared_from_this()](auto direction, auto bytes) {
        if (direction == http::message_direction::download) self->check_size(bytes);
      });
      connection_->requests()
          .request(*prepared, cancel_.get_token())
          .then([self = shared_from_this()](http::http_response response) {
            self->answer_.status = response.status_code();
            self->answer_.retry_after = header_of(response, "Retry-After");
            return response.extract_vector();
          })
          .then([self = shared_from_this()](const pplx::task<ResponseBytes>& body) {
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
    too_large_ = bytes > connection_->options().body_bytes_max;
    if (too_large_) throw std::length_error("the answer is too large");
  }

  void answered(std::string body) {
    const bool refused = answer_.status == 401 && !retried_ && !finished_;
    if (refused && connection_->renew_token(token_)) {
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
      const auto bound = std::to_string(connection_->options().body_bytes_max);
      return finish(
          Error{Code::internal, "the answer is larger than " + bound + " bytes", subject_, {}},
          to_string(Code::internal));
    }
    Error failure = connection_->failure(error, subject_);
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
    connection_->ended(&cancel_);
    connection_->deliver(
        [self = shared_from_this(), result = std::move(result), code = std::move(code)]() mutable {
          const auto& observe = self->connection_->options().observe;
          if (observe) {
            observe({self->request_.verb, self->request_.resource, code,
                     Clock::now() - self->started_});
          }
          self->done_(std::move(result));
        });
  }

  const std::shared_ptr<RestConnection> connection_;
  const Request request_;
  const HttpCall call_;
  const std::string subject_;
  const KubeApi::Done done_;
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

}  // namespace

void start_call(std::shared_ptr<RestConnection> connection, Request request, KubeApi::Done done) {
  auto call =
      std::make_shared<RestCall>(std::move(connection), std::move(request), std::move(done));
  boost::asio::post(http_thread(), [call = std::move(call)] { call->start(); });
}

}  // namespace tj
