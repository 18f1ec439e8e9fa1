#include "tests/kube/fake_kubelet.h"

#include <sys/socket.h>

namespace tj {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

FakeChannels::FakeChannels(Tls& tls, const Request& request)
    : request_(request), tls_(tls), socket_(tls) {
  socket_.binary(true);
  socket_.auto_fragment(false);
}

void FakeChannels::accept(const std::string& protocol) {
  socket_.set_option(
      beast::websocket::stream_base::decorator([protocol](beast::websocket::response_type& answer) {
        answer.set(http::field::sec_websocket_protocol, protocol);
      }));
  socket_.accept(request_);
}

void FakeChannels::refuse(int status, const std::string& body) {
  http::response<http::string_body> answer(http::int_to_status(static_cast<unsigned>(status)), 11);
  answer.body() = body;
  answer.prepare_payload();
  http::write(tls_, answer);
}

void FakeChannels::write(int channel, const std::string& bytes) {
  const std::string message = static_cast<char>(channel) + bytes;
  socket_.write(asio::buffer(message));
}

std::optional<std::string> FakeChannels::read() {
  beast::flat_buffer buffer;
  beast::error_code left;
  socket_.read(buffer, left);
  if (left) return std::nullopt;
  return beast::buffers_to_string(buffer.data());
}

void FakeChannels::close() { socket_.close(beast::websocket::close_code::normal); }

void FakeChannels::drop() { tls_.lowest_layer().close(); }

FakeKubelet::FakeKubelet(const Issued& identity, Upgrade on_upgrade, Answer answer)
    : on_upgrade_(std::move(on_upgrade)),
      answer_(std::move(answer)),
      acceptor_(loop_, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) {
  tls_.use_certificate_chain(asio::buffer(identity.certificate_pem));
  tls_.use_private_key(asio::buffer(identity.key_pem), asio::ssl::context::pem);
  accepting_ = std::jthread([this] {
    for (;;) {
      boost::system::error_code closed;
      tcp::socket socket = acceptor_.accept(closed);
      if (closed) return;
      const std::lock_guard lock(mutex_);
      sockets_.push_back(socket.native_handle());
      threads_.emplace_back(
          [this, taken = std::move(socket)]() mutable { serve(std::move(taken)); });
    }
  });
}

FakeKubelet::~FakeKubelet() {
  ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
  accepting_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  for (std::jthread& thread : threads_) thread.join();
}

std::string FakeKubelet::url() const {
  return "https://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
}

/// An exception is the end of a connection: a client that leaves is what some tests are about.
void FakeKubelet::serve(tcp::socket socket) {
  const int descriptor = socket.native_handle();
  try {
    FakeChannels::Tls tls(std::move(socket), tls_);
    tls.handshake(asio::ssl::stream_base::server);
    beast::flat_buffer buffer;
    for (bool goes_on = true; goes_on;) {
      FakeChannels::Request request;
      http::read(tls, buffer, request);
      if (beast::websocket::is_upgrade(request)) {
        FakeChannels channels(tls, request);
        on_upgrade_(channels);
        goes_on = false;
        continue;
      }
      const std::string body = answer_ ? answer_(std::string(request.target())) : "";
      http::response<http::string_body> answer(
          body.empty() ? http::status::not_found : http::status::ok, 11);
      answer.body() = body.empty() ? R"({"kind":"Status","code":404,"message":"not found"})" : body;
      answer.prepare_payload();
      http::write(tls, answer);
    }
    const std::lock_guard lock(mutex_);
    sockets_.remove(descriptor);
    return;
  } catch (const boost::system::system_error&) {}
  const std::lock_guard lock(mutex_);
  sockets_.remove(descriptor);
}

}  // namespace tj
