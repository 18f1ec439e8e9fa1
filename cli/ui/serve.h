// The page on a port, until somebody ends it: `tj ui` on loopback for one person, `tj serve` for
// all who have a token of the cluster.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "cli/ui/board.h"
#include "cli/ui/callers.h"
#include "cli/ui/feed.h"
#include "cli/ui/front.h"
#include "contract/result.h"

namespace tj::ui {

/// Serves what `feed` puts on `board` at 127.0.0.1, and prints the address to open. Port 0 takes a
/// free one. Returns after SIGINT or SIGTERM; fails where the port can't be had.
Result<void> serve_until_signal(boost::asio::io_context& loop, Board& board, Feed& feed, int port);

struct CallersService {
  boost::asio::ip::tcp::endpoint endpoint;
  Front front;
  std::string ns;  // looked at first; empty: all
  Callers::MakeApi make_api;
  std::chrono::milliseconds check_every{60'000};
};

/// Prints where it listens, and a line for each who signs in or out.
Result<void> serve_callers_until_signal(boost::asio::io_context& loop,
                                        const CallersService& service);

}  // namespace tj::ui
