#include "cli/cluster/proxy_choice.h"

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <cctype>
#include <string_view>

namespace tj {
namespace {

namespace ip = boost::asio::ip;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return text;
}

std::optional<ip::address> address_of(const std::string& text) {
  boost::system::error_code wrong;
  const ip::address address = ip::make_address(text, wrong);
  if (wrong) return std::nullopt;
  return address;
}

bool is_in_network(const ip::address& address, const std::string& cidr) {
  boost::system::error_code wrong;
  if (address.is_v4()) {
    const ip::network_v4 network = ip::make_network_v4(cidr, wrong);
    return !wrong && ip::make_network_v4(address.to_v4(), network.prefix_length()).canonical() ==
                         network.canonical();
  }
  const ip::network_v6 network = ip::make_network_v6(cidr, wrong);
  return !wrong && ip::make_network_v6(address.to_v6(), network.prefix_length()).canonical() ==
                       network.canonical();
}

struct Exception {
  std::string host;
  std::string port;  // "" for any
};

/// "host", "host:port", "v6", "[v6]:port"
Exception exception_of(const std::string& entry) {
  const std::size_t colon = entry.rfind(':');
  const bool has_brackets = entry.starts_with('[');
  const bool is_plain_v6 = !has_brackets && entry.find(':') != colon;
  if (colon == std::string::npos || is_plain_v6 || entry.ends_with(']')) {
    return {has_brackets ? entry.substr(1, entry.size() - 2) : entry, ""};
  }
  const std::string host = entry.substr(0, colon);
  return {has_brackets && host.ends_with(']') ? host.substr(1, host.size() - 2) : host,
          entry.substr(colon + 1)};
}

bool excepts(const std::string& entry, const ServerUrl& server) {
  if (entry == "*") return true;
  const std::string host = lower_case(server.host);
  const auto address = address_of(host);
  if (entry.find('/') != std::string::npos) return address && is_in_network(*address, entry);
  Exception exception = exception_of(entry);
  if (exception.host.empty()) return false;
  if (!exception.port.empty() && exception.port != std::to_string(server.port)) return false;
  if (const auto other = address_of(exception.host)) return address && *address == *other;
  if (exception.host.starts_with("*.")) exception.host.erase(0, 1);
  const bool is_suffix = exception.host.starts_with('.');
  return (!is_suffix && host == exception.host) ||
         host.ends_with(is_suffix ? exception.host : "." + exception.host);
}

}  // namespace

bool is_reached_directly(const ServerUrl& server, const std::string& no_proxy) {
  if (server.host == "localhost") return true;
  const auto address = address_of(server.host);
  if (address && address->is_loopback()) return true;
  const std::string_view all = no_proxy;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(',', begin), all.size());
    const std::string entry = lower_case(without_blanks(all.substr(begin, end - begin)));
    if (!entry.empty() && excepts(entry, server)) return true;
    begin = end + 1;
  }
  return false;
}

Result<std::optional<ServerUrl>> choose_proxy(const KubeConfig& config, const ServerUrl& server,
                                              const EnvText& env) {
  std::string source = "proxy-url";
  std::string text = config.proxy_url;
  if (text.empty()) {
    const auto first_of = [&](const char* upper, const char* lower) {
      source = env(upper).empty() ? lower : upper;
      return env(source.c_str());
    };
    const std::string no_proxy = first_of("NO_PROXY", "no_proxy");
    if (is_reached_directly(server, no_proxy)) return std::optional<ServerUrl>();
    text = server.scheme == "https" ? first_of("HTTPS_PROXY", "https_proxy")
                                    : first_of("HTTP_PROXY", "http_proxy");
    if (text.empty()) return std::optional<ServerUrl>();
  }
  const bool has_scheme = text.find("://") != std::string::npos;
  const Result<ServerUrl> proxy = parse_server_url(has_scheme ? text : "http://" + text);
  // The text may hold a password: it is not repeated.
  if (!proxy)
    return Error{Code::invalid, "is no URL of a proxy: " + proxy.error().message, source, {}};
  constexpr std::array kSchemes = {"http", "https", "socks5", "socks5h"};
  if (std::find(kSchemes.begin(), kSchemes.end(), proxy->scheme) != kSchemes.end())
    return std::optional<ServerUrl>(*proxy);
  return Error{Code::invalid,
               "its scheme is \"" + proxy->scheme + "\"; it must be http, https or socks5",
               source,
               {}};
}

}  // namespace tj
