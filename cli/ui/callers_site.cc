#include "cli/ui/callers_site.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "cli/ui/reply.h"
#include "operator/api/read.h"

namespace tj::ui {
namespace {

using nlohmann::json;

constexpr int kBadRequest = 400;
constexpr int kUnauthorized = 401;
constexpr int kNotFound = 404;
constexpr int kConflict = 409;
constexpr int kBadGateway = 502;
constexpr int kUnavailable = 503;
constexpr std::size_t kNamespaceBytesMax = 63;

HttpReply safe(HttpReply reply) {
  add_safe_headers(reply);
  return reply;
}

/// Nobody is signed in: the page shows how to.
HttpReply asks_to_sign_in(const std::string& why) {
  HttpReply reply = document({{"error", why}, {"sign_in", true}});
  reply.status = kUnauthorized;
  return reply;
}

HttpReply refusal(const Error& error) {
  if (error.code == Code::invalid) return asks_to_sign_in(error.message);
  if (error.code == Code::forbidden)
    return asks_to_sign_in("the cluster does not take this token: " + error.message);
  const bool is_passing = error.code == Code::unavailable || error.code == Code::timeout;
  return failure(is_passing ? kUnavailable : kBadGateway,
                 "the cluster can't be asked whose token this is: " + error.message);
}

HttpReply session_of(const Caller& caller, bool is_of_a_header) {
  return document({{"sign_in", true},
                   {"user", caller.user()},
                   {"namespace", caller.ns()},
                   {"of_a_header", is_of_a_header}});
}

/// RFC 1123: what a namespace may be called. Empty: all of them.
bool is_namespace(const std::string& text) {
  const bool has_letters_only = std::ranges::all_of(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  return has_letters_only && text.size() <= kNamespaceBytesMax && !text.starts_with('-') &&
         !text.ends_with('-');
}

/// The object of a POST, in which "namespace" is one; absent: it is not.
std::optional<json> posted(const HttpQuestion& question) {
  json content = read::parse(question.body);
  const bool is_fine = content.is_object() && is_namespace(read::string_at(content, "namespace"));
  return is_fine ? std::optional(std::move(content)) : std::nullopt;
}

HttpReply bad_post() {
  return failure(kBadRequest,
                 "the body must be a JSON object; \"namespace\" may have 63 small letters, digits "
                 "and dashes");
}

}  // namespace

CallersSite::CallersSite(Callers& callers, Front front, std::string ns)
    : callers_(callers), front_(std::move(front)), ns_(std::move(ns)) {}

HttpReply CallersSite::answer(const HttpQuestion& question) {
  if (question.target == "/healthz" && question.method != "POST") return safe({.body = "ok\n"});
  const Verdict verdict = judge_front(question, front_);
  if (verdict.entry == Entry::refused) return safe(failure(verdict.status, verdict.why));
  HttpReply reply = question.method == "POST" ? answer_post(question) : answer_judged(question);
  return reply.later ? std::move(reply) : safe(std::move(reply));
}

HttpReply CallersSite::answer_judged(const HttpQuestion& question) {
  const Route route = route_of(question.target);
  if (const auto* to = std::get_if<ToFile>(&route)) return page_file(to->path);
  if (std::holds_alternative<ToSession>(route)) return session(question);
  return with_caller(question, [question](Caller& caller) { return caller.answer(question); });
}

HttpReply CallersSite::answer_post(const HttpQuestion& question) {
  if (question.target == "/api/sign-in") return sign_in(question);
  if (question.target == "/api/sign-out") return sign_out(question);
  if (question.target == "/api/namespace") return choose(question);
  return failure(kNotFound, "there is nothing to post to");
}

HttpReply CallersSite::sign_in(const HttpQuestion& question) {
  const auto content = posted(question);
  if (!content) return bad_post();
  const Claim claim{
      .token = read::string_at(*content, "token"),
      .ns = content->contains("namespace") ? read::string_at(*content, "namespace") : ns_};
  HttpReply reply;
  reply.later = [this, claim, question](const HttpReply::Give& give) {
    callers_.sign_in(claim, [give, question](const Result<Callers::SignedIn>& in) {
      if (!in) return give(safe(refusal(in.error())));
      HttpReply known = session_of(*in->caller, false);
      known.headers.emplace_back("Set-Cookie", session_cookie(question, in->session));
      give(safe(std::move(known)));
    });
  };
  return reply;
}

HttpReply CallersSite::sign_out(const HttpQuestion& question) {
  const Shown shown = shown_by(question);
  if (shown.bearer)
    return failure(kConflict, "a proxy in front of this page has signed you in: sign out there");
  if (shown.session) callers_.sign_out(*shown.session);
  HttpReply reply = document({{"sign_in", true}, {"user", nullptr}, {"namespace", ns_}});
  reply.headers.emplace_back("Set-Cookie", session_cookie_removal(question));
  return reply;
}

HttpReply CallersSite::choose(const HttpQuestion& question) {
  const auto content = posted(question);
  if (!content) return bad_post();
  const bool is_of_a_header = shown_by(question).bearer.has_value();
  const std::string ns = read::string_at(*content, "namespace");
  return with_caller(question, [ns, is_of_a_header](Caller& caller) {
    if (caller.ns() != ns) caller.choose(ns);
    return session_of(caller, is_of_a_header);
  });
}

/// Who asks without being signed in is told so by 200: a page that begins is no error.
HttpReply CallersSite::session(const HttpQuestion& question) {
  const Shown shown = shown_by(question);
  if (shown.bearer)
    return with_caller(question, [](Caller& caller) { return session_of(caller, true); });
  const Caller* known = shown.session ? callers_.find(*shown.session) : nullptr;
  if (known != nullptr) return session_of(*known, false);
  return document({{"sign_in", true}, {"user", nullptr}, {"namespace", ns_}});
}

HttpReply CallersSite::with_caller(const HttpQuestion& question, Use use) {
  const Shown shown = shown_by(question);
  if (!shown.bearer) {
    Caller* const known = shown.session ? callers_.find(*shown.session) : nullptr;
    return known == nullptr ? signed_out(question) : use(*known);
  }
  if (Caller* const known = callers_.find_by_token(*shown.bearer)) return use(*known);
  HttpReply reply;
  const Claim claim{.token = *shown.bearer, .ns = ns_, .is_of_a_header = true};
  reply.later = [this, claim, use = std::move(use)](const HttpReply::Give& give) {
    callers_.sign_in(claim, [give, use](const Result<Callers::SignedIn>& in) {
      give(safe(in ? use(*in->caller) : refusal(in.error())));
    });
  };
  return reply;
}

HttpReply CallersSite::signed_out(const HttpQuestion& question) const {
  const Shown shown = shown_by(question);
  const std::string why = shown.session ? callers_.why_ended(*shown.session) : "";
  if (!why.empty()) return asks_to_sign_in("Your session has ended: " + why + ".");
  return asks_to_sign_in("You are not signed in.");
}

}  // namespace tj::ui
