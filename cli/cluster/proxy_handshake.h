// What is said to a proxy before the way to the server is open: CONNECT of HTTP (RFC 9110, section
// 9.3.6), or SOCKS 5 (RFC 1928, RFC 1929). The proxy resolves the server's name.
#pragma once
#include "cli/cluster/dialer.h"

namespace tj {

boost::asio::awaitable<Result<std::unique_ptr<Wire>>> http_tunnel(std::unique_ptr<Wire> wire,
                                                                  const Route& route);
boost::asio::awaitable<Result<std::unique_ptr<Wire>>> socks_tunnel(std::unique_ptr<Wire> wire,
                                                                   const Route& route);

}  // namespace tj
