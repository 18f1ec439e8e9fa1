// The URL of an API server or of a proxy, in parts. IPv6 literals stand in brackets (RFC 3986).
// Pure.
#pragma once
#include <string>

#include "contract/result.h"

namespace tj {

struct ServerUrl {
  std::string scheme;  // lower case
  std::string user;    // decoded
  std::string password;
  std::string host;  // without brackets
  int port = 0;
  std::string path;  // "" or "/a/b", without a slash at the end
  bool operator==(const ServerUrl&) const = default;
};

/// Schemes that have a known port may leave it out: https 443, http 80, socks5 1080. The error's
/// message says what is wrong; its subject is empty.
Result<ServerUrl> parse_server_url(const std::string& text);

/// "host:port", an IPv6 host in brackets.
std::string host_and_port(const ServerUrl& url);

}  // namespace tj
