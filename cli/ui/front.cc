#include "cli/ui/front.h"

#include <algorithm>
#include <cctype>

namespace tj::ui {
namespace {

constexpr int kForbidden = 403;
constexpr int kMethodNotAllowed = 405;
constexpr int kUnsupportedMediaType = 415;
constexpr const char* kLoopbackNames[] = {"localhost", "127.0.0.1", "[::1]"};

Verdict refused(int status, std::string why) { return {Entry::refused, status, std::move(why)}; }

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& character : lower)
    character = static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
  return lower;
}

struct HostAndPort {
  std::string host;
  std::string port;  // "" where none is said
};

/// "name", "name:port", "[v6]:port"
HostAndPort split(std::string_view text) {
  const auto bracket = text.find(']');
  const auto colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon == std::string_view::npos) return {lower_case(text), ""};
  return {lower_case(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

bool is_port(const std::string& text) {
  return text.size() <= 5 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_own(const HostAndPort& called, const Front& front) {
  if (!is_port(called.port)) return false;
  const bool is_loopback =
      std::ranges::find(kLoopbackNames, called.host) != std::end(kLoopbackNames);
  return is_loopback || std::ranges::find(front.hosts, called.host) != front.hosts.end();
}

/// What a proxy in front says of the way from the browser to it.
bool is_over_tls(const HttpQuestion& question) {
  const auto schemes = question.values_of("x-forwarded-proto");
  return !schemes.empty() && lower_case(schemes[0]).starts_with("https");
}

std::string cookie_name_of(const HttpQuestion& question) {
  const auto hosts = question.values_of("host");
  const std::string port = hosts.empty() ? "" : split(hosts[0]).port;
  // A browser takes a cookie of this prefix only with Secure, and of this very host.
  const std::string prefix = is_over_tls(question) ? "__Host-tj-page" : "tj-page";
  return port.empty() ? prefix : prefix + "-" + port;
}

/// `host` as it came. Without TLS at a proxy that says so, either scheme may be the browser's.
bool is_own_origin(std::string_view origin, std::string_view host, bool is_over_tls) {
  const std::string name = lower_case(host);
  const std::string shown = lower_case(origin);
  return shown == "https://" + name || (!is_over_tls && shown == "http://" + name);
}

std::string cookie(const HttpQuestion& question, const std::string& value) {
  const std::string secure = is_over_tls(question) ? "; Secure" : "";
  return cookie_name_of(question) + "=" + value + "; Path=/; HttpOnly; SameSite=Strict" + secure;
}

}  // namespace

Verdict judge_front(const HttpQuestion& question, const Front& front) {
  const bool is_post = question.method == "POST";
  if (!is_post && question.method != "GET" && question.method != "HEAD")
    return refused(kMethodNotAllowed, "only GET, HEAD and POST: the page changes no job");
  const auto hosts = question.values_of("host");
  if (hosts.size() != 1 || !is_own(split(hosts[0]), front))
    return refused(
        kForbidden,
        "the Host header is no name of this page; --host (in the chart: page.hosts) names "
        "those by which it is reached");
  const auto origins = question.values_of("origin");
  for (const auto origin : origins) {
    if (!is_own_origin(origin, hosts[0], is_over_tls(question)))
      return refused(kForbidden, "requests of other origins are refused");
  }
  if (is_of_other_site(question)) return refused(kForbidden, "requests of other sites are refused");
  if (!is_post) return {.entry = Entry::allowed, .status = 200, .why = {}};
  if (origins.empty()) return refused(kForbidden, "a POST needs the Origin header");
  const auto types = question.values_of("content-type");
  if (types.size() != 1 || !types[0].starts_with("application/json"))
    return refused(kUnsupportedMediaType, "the Content-Type must be application/json");
  return {.entry = Entry::allowed, .status = 200, .why = {}};
}

Shown shown_by(const HttpQuestion& question) {
  return {.bearer = bearer_token(question),
          .session = cookie_value(question, cookie_name_of(question))};
}

std::string session_cookie(const HttpQuestion& question, const std::string& session) {
  return cookie(question, session);
}

std::string session_cookie_removal(const HttpQuestion& question) {
  return cookie(question, "") + "; Max-Age=0";
}

}  // namespace tj::ui
