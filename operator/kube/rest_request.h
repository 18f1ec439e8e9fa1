// What a request is on the wire, and what an answer means: pure, so that each rule has a test.
#pragma once
#include <string>

#include "contract/result.h"
#include "operator/kube/kube_api.h"

namespace tj {

struct HttpCall {
  const char* method = "GET";
  std::string target;             // path and query, percent-encoded
  const char* content_type = "";  // "" without a body
};
HttpCall http_call(const Request& request);
HttpCall http_call(const WatchRequest& request);

/// RFC 3986: everything but unreserved characters.
std::string percent_encode(const std::string& text);

struct HttpAnswer {
  int status = 0;
  std::string body;
  std::string retry_after;  // the header's text
};
/// The body of a 2xx answer; else an Error with the message of the API server's Status object.
/// `subject` is "GET https://...".
Result<std::string> read_answer(HttpAnswer answer, const std::string& subject);

}  // namespace tj
