#include "operator/loop/http_progress_source.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <memory>

#include "contract/names.h"

namespace tj {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

/// What a failure after the connection says. The parser complains in its own category; that the
/// other side hung up in the middle is no answer.
PollResult result_of(const error_code& error) {
  const bool is_cut = error == http::error::end_of_stream || error == http::error::partial_message;
  const bool is_parsers = error.category() == make_error_code(http::error::bad_version).category();
  return is_parsers && !is_cut ? PollResult::invalid : PollResult::no_answer;
}

/// One exchange; it lives in the handlers it waits for.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(boost::asio::io_context& loop, ProgressSource::Done done)
      : stream_(loop), done_(std::move(done)) {}

  void start(const tcp::endpoint& endpoint, std::chrono::milliseconds time_max) {
    request_ = {http::verb::get, names::kProgressPath, 11};
    const std::string ip = endpoint.address().to_string();
    const std::string host = endpoint.address().is_v6() ? "[" + ip + "]" : ip;
    request_.set(http::field::host, host + ":" + std::to_string(endpoint.port()));
    request_.set(http::field::user_agent, "trainingjob-operator");
    request_.keep_alive(false);
    parser_.header_limit(HttpProgressSource::kHeaderBytesMax);
    parser_.body_limit(kProgressBytesMax);
    stream_.expires_after(time_max);  // of all that follows: it is set once
    stream_.async_connect(
        endpoint, [self = shared_from_this()](error_code error) { self->on_connected(error); });
  }

 private:
  void on_connected(error_code error) {
    if (error == boost::asio::error::connection_refused) return end({PollResult::refused, {}});
    if (error) return end({PollResult::unreachable, {}});
    http::async_write(stream_, request_,
                      [self = shared_from_this()](error_code failed, std::size_t) {
                        if (failed) return self->end({PollResult::no_answer, {}});
                        self->read();
                      });
  }
  void read() {
    http::async_read(
        stream_, buffer_, parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_read(error); });
  }
  void on_read(error_code error) {
    if (error) return end({result_of(error), {}});
    const bool is_ok = parser_.get().result() == http::status::ok;
    auto document = from_progress_document(parser_.get().body());
    if (!is_ok || !document) return end({PollResult::invalid, {}});
    end({PollResult::read, *std::move(document)});
  }
  void end(PollAnswer answer) {
    error_code ignored;
    stream_.socket().close(ignored);
    std::exchange(done_, nullptr)(std::move(answer));
  }

  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_{HttpProgressSource::kHeaderBytesMax + kProgressBytesMax};
  http::request<http::empty_body> request_;
  http::response_parser<http::string_body> parser_;
  ProgressSource::Done done_;
};

}  // namespace

const char* to_string(PollResult result) {
  switch (result) {
    case PollResult::read: return "read";
    case PollResult::refused: return "refused";
    case PollResult::unreachable: return "unreachable";
    case PollResult::no_answer: return "no_answer";
    case PollResult::invalid: return "invalid";
  }
  return "invalid";
}

void HttpProgressSource::fetch(const ProgressTarget& target, Done done) {
  error_code error;
  const auto ip = boost::asio::ip::make_address(target.ip, error);
  if (error) {
    boost::asio::post(loop_, [done = std::move(done)] { done({PollResult::unreachable, {}}); });
    return;
  }
  const tcp::endpoint endpoint(ip, static_cast<unsigned short>(target.port));
  std::make_shared<Exchange>(loop_, std::move(done))->start(endpoint, exchange_max_);
}

}  // namespace tj
