// A small HTTP/1.1 server on a loop's own thread, for pages that a person, a probe or a browser
// asks for: answers to small requests, and bodies that grow while somebody reads them. Everything
// that a client sends or holds is bounded. What is answered is the caller's.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "contract/result.h"

namespace tj {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpQuestion {
  std::string method;
  std::string target;   // path and query, as they came
  HttpHeaders headers;  // names in lower case, in the client's order
  std::string body = {};

  /// The values of one header; none where it was not sent, two where a client contradicts itself.
  std::vector<std::string_view> values_of(std::string_view lower_case_name) const;
};

/// A body that grows. Its destruction is the client's end, or the server's: nothing is given after.
class HttpStream {
 public:
  /// Absent: this is the end of the body.
  using Give = std::function<void(std::optional<std::string> chunk)>;
  virtual ~HttpStream() = default;
  /// Asked for once the chunk before has been written; calls `give` once, now or in a later turn.
  virtual void next(Give give) = 0;
};

struct HttpReply {
  /// Takes the reply that was not known at once; a client that has gone by then is not told.
  using Give = std::function<void(HttpReply reply)>;
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  HttpHeaders headers = {};
  std::unique_ptr<HttpStream> stream = nullptr;  // set: `body` is not sent, its chunks are
  /// Set: nothing above counts. Called once; calls `give` once, now or in a later turn.
  std::function<void(Give give)> later = nullptr;
};

struct HttpServerOptions {
  /// Beyond it, who has been idle longest is hung up on: nobody waits for others to leave.
  int connections_max = 32;
  std::chrono::seconds idle_max{30};  // for a request to come, an answer or a chunk to go
  std::size_t request_bytes_max = 8 * 1024;
};

class HttpServer {
 public:
  using Answer = std::function<HttpReply(const HttpQuestion& question)>;

  /// Fails with the endpoint and the cause. Port 0 takes a free one.
  static Result<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& loop,
                                                    const boost::asio::ip::tcp::endpoint& endpoint,
                                                    HttpServerOptions options, Answer answer);
  ~HttpServer();
  int port() const;
  /// Closes the listener and each connection.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

/// "0.0.0.0:8080", "[::]:8080", ":8080"; fails with the address as it must be.
Result<boost::asio::ip::tcp::endpoint> parse_endpoint(const std::string& address);

}  // namespace tj
