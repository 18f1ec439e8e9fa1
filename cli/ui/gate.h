// Who may read the page. Every request is judged here before anything is answered: the page shows
// what its owner's kubeconfig may read, and any program of the machine, and any page in the
// browser, can reach a port on loopback.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "operator/loop/http_server.h"

namespace tj::ui {

/// Characters of a token: 256 bits as hexadecimal digits.
inline constexpr std::size_t kTokenCharacters = 64;
/// From the system's source of random numbers; empty where it has none.
std::string random_token();

/// The time does not depend on where they differ.
bool equal_in_constant_time(std::string_view left, std::string_view right);

struct Gate {
  std::string token;
  int port = 0;
};

enum class Entry {
  allowed,
  sets_cookie,  // the address holds the token: keep it in a cookie, and take it out of the address
  refused,
};

struct Verdict {
  Entry entry = Entry::refused;
  int status = 200;  // of a refusal
  std::string why;   // the same
};

/// Refused are other methods than GET and HEAD (405), a Host that is not this server on loopback
/// and any other origin (403: DNS rebinding, other pages), a missing token (401), a wrong one
/// (403).
Verdict judge(const HttpQuestion& question, const Gate& gate);

/// The browser says that another site asks, and it is no link to the page itself.
bool is_of_other_site(const HttpQuestion& question);
/// Of `Authorization: Bearer`; absent where there is none.
std::optional<std::string> bearer_token(const HttpQuestion& question);
std::optional<std::string> cookie_value(const HttpQuestion& question, std::string_view name);

/// Cookies are shared by all ports of a host, so that its name holds the port.
std::string cookie_name(int port);
/// HttpOnly and SameSite=Strict, until the browser is closed.
std::string cookie_header(const Gate& gate);

/// The value of a parameter after the first '?', percent-decoded; "" where there is none.
std::string query_value(std::string_view target, std::string_view name);
/// "%41" as "A"; what is no such sequence stays as it is.
std::string percent_decoded(std::string_view text);

}  // namespace tj::ui
