#include "cli/ui/serve.h"

#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>

#include "cli/ui/callers_site.h"
#include "cli/ui/gate.h"
#include "cli/ui/site.h"

namespace tj::ui {
namespace {

void run_until_signal(boost::asio::io_context& loop) {
  boost::asio::signal_set signals(loop, SIGINT, SIGTERM);
  signals.async_wait([&loop](auto, int) { loop.stop(); });
  loop.restart();
  loop.run();
}

void print_line(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

Result<void> serve_until_signal(boost::asio::io_context& loop, Board& board, Feed& feed, int port) {
  Gate gate{.token = random_token(), .port = 0};
  if (gate.token.size() != kTokenCharacters)
    return Error{Code::internal, "the system gives no random numbers for a token", "tj ui", {}};
  Site site(board, feed);
  const boost::asio::ip::tcp::endpoint loopback(boost::asio::ip::address_v4::loopback(),
                                                static_cast<unsigned short>(port));
  const auto server = HttpServer::listen(
      loop, loopback, {.connections_max = Site::kConnectionsMax},
      [&site, &gate](const HttpQuestion& question) { return site.answer(question, gate); });
  if (!server) return server.error();
  gate.port = (*server)->port();
  std::printf("http://127.0.0.1:%d/?token=%s\n", gate.port, gate.token.c_str());
  std::printf("shows: %s. Open the address in a browser of this machine; Ctrl-C ends it.\n",
              feed.name().c_str());
  std::fflush(stdout);
  feed.start();
  run_until_signal(loop);
  return {};
}

Result<void> serve_callers_until_signal(boost::asio::io_context& loop,
                                        const CallersService& service) {
  Callers callers(loop, service.make_api, {.check_every = service.check_every, .tell = print_line});
  CallersSite site(callers, service.front, service.ns);
  const auto server =
      HttpServer::listen(loop, service.endpoint,
                         {.connections_max = CallersSite::kConnectionsMax,
                          .request_bytes_max = CallersSite::kRequestBytesMax},
                         [&site](const HttpQuestion& question) { return site.answer(question); });
  if (!server) return server.error();
  print_line("listens on port " + std::to_string((*server)->port()));
  run_until_signal(loop);
  return {};
}

}  // namespace tj::ui
