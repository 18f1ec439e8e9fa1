#include "operator/kube/server_url.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

namespace tj {
namespace {

constexpr int kPortMax = 65535;

Error wrong(const std::string& message) { return Error{Code::invalid, message, "", {}}; }

int default_port(const std::string& scheme) {
  if (scheme == "https") return 443;
  if (scheme == "http") return 80;
  return scheme.starts_with("socks5") ? 1080 : 0;
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '%' && i + 2 < text.size();
    const auto high = escaped ? hex_digit(text[i + 1]) : std::nullopt;
    const auto low = escaped ? hex_digit(text[i + 2]) : std::nullopt;
    if (!high || !low) {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return decoded;
}

bool is_host_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
}

bool is_host(std::string_view host, bool is_ipv6) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [is_ipv6](char c) {
    return is_host_character(c) || (is_ipv6 && c == ':');
  });
}

/// `text` is "host", "host:port", "[v6]" or "[v6]:port".
Result<void> read_authority(std::string_view text, ServerUrl& url) {
  const bool is_ipv6 = text.starts_with('[');
  const std::size_t host_end = is_ipv6 ? text.find(']') : std::min(text.find(':'), text.size());
  if (host_end == std::string_view::npos) return wrong("its [ has no ]");
  const std::string_view host = is_ipv6 ? text.substr(1, host_end - 1) : text.substr(0, host_end);
  const std::string_view rest = text.substr(is_ipv6 ? host_end + 1 : host_end);
  if (!is_host(host, is_ipv6)) return wrong("it names no host");
  url.host = host;
  url.port = default_port(url.scheme);
  if (rest.empty() || rest == ":") {
    return url.port == 0 ? Result<void>(wrong("it names no port")) : Result<void>();
  }
  const std::string_view digits = rest.substr(1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), url.port);
  const bool is_whole = read.ec == std::errc{} && read.ptr == digits.data() + digits.size();
  if (rest.front() == ':' && is_whole && url.port > 0 && url.port <= kPortMax) return {};
  return wrong("its port must be a number from 1 to " + std::to_string(kPortMax) +
               " (an IPv6 address stands in brackets)");
}

}  // namespace

Result<ServerUrl> parse_server_url(const std::string& text) {
  const bool has_blank = std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || byte == 0x7f;
  });
  if (has_blank) return wrong("it holds white space");
  const std::size_t colon = text.find("://");
  if (colon == std::string::npos || colon == 0) return wrong("it must be scheme://host:port");
  ServerUrl url;
  url.scheme = text.substr(0, colon);
  std::transform(url.scheme.begin(), url.scheme.end(), url.scheme.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view rest = std::string_view(text).substr(colon + 3);
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return wrong("a query or a fragment has no place in it");
  }
  const std::size_t path = std::min(rest.find('/'), rest.size());
  url.path = rest.substr(path);
  while (url.path.ends_with('/')) url.path.pop_back();
  rest = rest.substr(0, path);
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = rest.substr(0, at);
    const std::size_t parts = std::min(user.find(':'), user.size());
    url.user = percent_decoded(user.substr(0, parts));
    if (parts < user.size()) url.password = percent_decoded(user.substr(parts + 1));
    rest = rest.substr(at + 1);
  }
  const Result<void> read = read_authority(rest, url);
  if (!read) return read.error();
  return url;
}

std::string host_and_port(const ServerUrl& url) {
  const bool is_ipv6 = url.host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + url.host + "]" : url.host) + ":" + std::to_string(url.port);
}

}  // namespace tj
