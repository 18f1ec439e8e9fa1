#include "cli/ui/gate.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <array>
#include <charconv>

namespace tj::ui {
namespace {

constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kMethodNotAllowed = 405;
constexpr std::string_view kBearer = "Bearer ";

Verdict refused(int status, std::string why) { return {Entry::refused, status, std::move(why)}; }

bool is_own_host(std::string_view host, int port) {
  const std::string suffix = ":" + std::to_string(port);
  return host == "127.0.0.1" + suffix || host == "localhost" + suffix;
}

/// A link to the page may stand anywhere; what it opens can't be read by who has linked it.
bool is_navigation_to_page(const HttpQuestion& question) {
  const auto mode = question.values_of("sec-fetch-mode");
  const auto destination = question.values_of("sec-fetch-dest");
  const bool is_navigation = mode.size() == 1 && mode[0] == "navigate";
  const bool is_document = destination.size() == 1 && destination[0] == "document";
  return is_navigation && is_document &&
         question.target.substr(0, question.target.find('?')) == "/";
}

std::optional<std::string> why_foreign(const HttpQuestion& question, int port) {
  const auto hosts = question.values_of("host");
  if (hosts.size() != 1 || !is_own_host(hosts[0], port))
    return "the Host header must be 127.0.0.1:" + std::to_string(port);
  for (const auto origin : question.values_of("origin")) {
    if (origin != "http://" + std::string(hosts[0])) return "requests of other origins are refused";
  }
  if (is_of_other_site(question)) return "requests of other sites are refused";
  return {};
}

/// What the client shows as its token in headers; absent where it shows none.
std::optional<std::string> shown_token(const HttpQuestion& question, int port) {
  auto bearer = bearer_token(question);
  return bearer ? bearer : cookie_value(question, cookie_name(port));
}

}  // namespace

bool is_of_other_site(const HttpQuestion& question) {
  for (const auto site : question.values_of("sec-fetch-site")) {
    const bool is_own = site == "same-origin" || site == "none";
    if (!is_own && !is_navigation_to_page(question)) return true;
  }
  return false;
}

std::optional<std::string> bearer_token(const HttpQuestion& question) {
  for (const auto value : question.values_of("authorization")) {
    if (value.starts_with(kBearer)) return std::string(value.substr(kBearer.size()));
  }
  return {};
}

std::optional<std::string> cookie_value(const HttpQuestion& question, std::string_view name) {
  const std::string wanted = std::string(name) + "=";
  for (std::string_view cookies : question.values_of("cookie")) {
    while (!cookies.empty()) {
      const auto end = cookies.find(';');
      std::string_view cookie = cookies.substr(0, end);
      while (cookie.starts_with(' ')) cookie.remove_prefix(1);
      if (cookie.starts_with(wanted)) return std::string(cookie.substr(wanted.size()));
      cookies = end == std::string_view::npos ? "" : cookies.substr(end + 1);
    }
  }
  return {};
}

std::string random_token() {
  std::array<unsigned char, kTokenCharacters / 2> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) return "";
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : bytes) {
    token += kDigits[byte >> 4U];
    token += kDigits[byte & 15U];
  }
  return token;
}

bool equal_in_constant_time(std::string_view left, std::string_view right) {
  return left.size() == right.size() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

Verdict judge(const HttpQuestion& question, const Gate& gate) {
  if (question.method != "GET" && question.method != "HEAD")
    return refused(kMethodNotAllowed, "only GET and HEAD: the page changes nothing");
  if (const auto why = why_foreign(question, gate.port)) return refused(kForbidden, *why);
  const std::string in_address = query_value(question.target, "token");
  if (!in_address.empty()) {
    if (!equal_in_constant_time(in_address, gate.token))
      return refused(kForbidden, "the token in the address is not the one that tj ui printed");
    return {.entry = Entry::sets_cookie, .status = 200, .why = {}};
  }
  const auto shown = shown_token(question, gate.port);
  if (!shown)
    return refused(kUnauthorized, "open the address that tj ui printed: it holds a token");
  if (!equal_in_constant_time(*shown, gate.token))
    return refused(kForbidden,
                   "the token is not the one that tj ui printed: open its address again");
  return {.entry = Entry::allowed, .status = 200, .why = {}};
}

std::string cookie_name(int port) { return "tj-ui-" + std::to_string(port); }

std::string cookie_header(const Gate& gate) {
  return cookie_name(gate.port) + "=" + gate.token + "; Path=/; HttpOnly; SameSite=Strict";
}

std::string query_value(std::string_view target, std::string_view name) {
  const auto mark = target.find('?');
  if (mark == std::string_view::npos) return "";
  std::string_view rest = target.substr(mark + 1);
  while (!rest.empty()) {
    const auto end = rest.find('&');
    const std::string_view parameter = rest.substr(0, end);
    const auto equals = parameter.find('=');
    if (equals != std::string_view::npos && parameter.substr(0, equals) == name)
      return percent_decoded(parameter.substr(equals + 1));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return "";
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned value = 0;
    const char* const digits = text.data() + at + 1;
    const bool has_digits = text[at] == '%' && at + 2 < text.size() &&
                            std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    decoded += has_digits ? static_cast<char>(value) : text[at];
    if (has_digits) at += 2;
  }
  return decoded;
}

}  // namespace tj::ui
