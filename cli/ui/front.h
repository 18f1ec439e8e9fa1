// What may come in to a page that several people reach over the network (`tj serve`), judged before
// anybody is asked who they are: by which name it was called, and what a browser says of the
// request. And what a request shows of who sends it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/ui/gate.h"
#include "operator/loop/http_server.h"

namespace tj::ui {

struct Front {
  /// Names by which it is reached, in lower case and without a port. Those of loopback always are:
  /// kubectl port-forward leads there.
  std::vector<std::string> hosts;
};

/// Refused are other methods than GET, HEAD and POST (405); a Host that is none of ours, another
/// origin and another site (403); a POST without an Origin (403) or with other than JSON (415): no
/// page elsewhere can send these.
Verdict judge_front(const HttpQuestion& question, const Front& front);

/// What a request shows; the header wins, since a proxy in front sets it.
struct Shown {
  std::optional<std::string> bearer;
  std::optional<std::string> session;  // of the cookie
};
Shown shown_by(const HttpQuestion& question);

/// A Set-Cookie that keeps the session: HttpOnly, SameSite=Strict, until the browser is closed; and
/// Secure where a proxy says that the browser speaks TLS to it (X-Forwarded-Proto). The name has
/// the port, since cookies are shared by all ports of a host.
std::string session_cookie(const HttpQuestion& question, const std::string& session);
/// One that takes it away.
std::string session_cookie_removal(const HttpQuestion& question);

}  // namespace tj::ui
