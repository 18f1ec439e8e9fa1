#include "tests/kube/fault_server.h"

#include <sstream>

namespace tj {
namespace asio = boost::asio;
using asio::use_awaitable;
using asio::ip::tcp;

Reply reply(int status, const std::string& body, const std::string& more_headers) {
  return {.pieces = {"HTTP/1.1 " + std::to_string(status) + " Reason\r\nContent-Length: " +
                     std::to_string(body.size()) + "\r\n" + more_headers + "\r\n" + body}};
}
std::string chunked_head() { return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"; }
std::string chunk(const std::string& data) {
  std::ostringstream out;
  out << std::hex << data.size() << "\r\n" << data << "\r\n";
  return out.str();
}

FaultServer::FaultServer(const Issued& identity, Handler handler, const std::string& address)
    : handler_(std::move(handler)),
      acceptor_(loop_, tcp::endpoint(asio::ip::make_address(address), 0)),
      host_(address.find(':') == std::string::npos ? address : "[" + address + "]") {
  tls_.use_certificate_chain(asio::buffer(identity.certificate_pem));
  tls_.use_private_key(asio::buffer(identity.key_pem), asio::ssl::context::pem);
  port_ = acceptor_.local_endpoint().port();
  asio::co_spawn(loop_, accept(), asio::detached);
  thread_ = std::jthread([this] { loop_.run(); });
}

FaultServer::~FaultServer() { loop_.stop(); }

std::vector<std::string> FaultServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

asio::awaitable<void> FaultServer::accept() {
  for (;;) {
    tcp::socket socket = co_await acceptor_.async_accept(use_awaitable);
    ++connections_;
    asio::co_spawn(loop_, serve(std::make_shared<Socket>(std::move(socket), tls_)), asio::detached);
  }
}

asio::awaitable<std::string> FaultServer::read_request(Socket& socket, std::string& buffer) {
  const std::size_t head = co_await asio::async_read_until(socket, asio::dynamic_buffer(buffer),
                                                           "\r\n\r\n", use_awaitable);
  std::size_t body = 0;
  const std::size_t length = buffer.find("Content-Length:");
  if (length < head) body = std::stoul(buffer.substr(length + 15));
  if (buffer.size() < head + body) {
    co_await asio::async_read(socket, asio::dynamic_buffer(buffer),
                              asio::transfer_exactly(head + body - buffer.size()), use_awaitable);
  }
  std::string request = buffer.substr(0, head + body);
  buffer.erase(0, head + body);
  co_return request;
}

/// An exception is the end of a connection: a client that leaves is what many tests are about.
asio::awaitable<void> FaultServer::serve(std::shared_ptr<Socket> socket) {
  try {
    asio::steady_timer timer(loop_);
    co_await socket->async_handshake(asio::ssl::stream_base::server, use_awaitable);
    std::string buffer;
    for (;;) {
      const std::string request = co_await read_request(*socket, buffer);
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      const Reply answer = handler_(request);
      for (const std::string& piece : answer.pieces) {
        co_await asio::async_write(*socket, asio::buffer(piece), use_awaitable);
        if (answer.between.count() == 0) continue;
        timer.expires_after(answer.between);
        co_await timer.async_wait(use_awaitable);
      }
      if (answer.after == After::close) co_return;
      // Reading on keeps the connection open, and ends when the client leaves.
      if (answer.after == After::hang) co_await read_request(*socket, buffer);
    }
  } catch (const boost::system::system_error&) {}
}

}  // namespace tj
