// The page for several callers (`tj serve`) as HTTP: judges each request (front.h), finds out whose
// it is (callers.h), and answers with what that caller's own client has read. Beside the interface
// of site.h, which it serves to each caller:
//
//   GET  /healthz          for probes; the one path that any name may ask for
//   GET  /api/session      who is signed in
//   POST /api/sign-in      {"token": "...", "namespace": "..."}; gives a cookie
//   POST /api/namespace    {"namespace": "..."}: look at another one
//   POST /api/sign-out     {}
//
// The files of the page hold nothing of anybody, and are for all.
#pragma once
#include <functional>
#include <string>

#include "cli/ui/callers.h"
#include "cli/ui/front.h"
#include "operator/loop/http_server.h"

namespace tj::ui {

class CallersSite {
 public:
  static constexpr int kConnectionsMax = 256;
  static constexpr std::size_t kRequestBytesMax = 32 * 1024;  // tokens are long

  /// `ns` is looked at first, unless somebody asks for another one; empty: all.
  CallersSite(Callers& callers, Front front, std::string ns);
  HttpReply answer(const HttpQuestion& question);

 private:
  using Use = std::function<HttpReply(Caller& caller)>;

  HttpReply answer_judged(const HttpQuestion& question);
  HttpReply answer_post(const HttpQuestion& question);
  HttpReply sign_in(const HttpQuestion& question);
  HttpReply sign_out(const HttpQuestion& question);
  HttpReply choose(const HttpQuestion& question);
  HttpReply session(const HttpQuestion& question);
  /// `use`, now or once the token of a header is known; else what asks to sign in.
  HttpReply with_caller(const HttpQuestion& question, Use use);
  HttpReply signed_out(const HttpQuestion& question) const;

  Callers& callers_;
  Front front_;
  std::string ns_;
};

}  // namespace tj::ui
