#include "operator/kube/rest_request.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "contract/utf8.h"
#include "operator/api/read.h"

namespace tj {
namespace {
using namespace read;

constexpr std::size_t kBodyInMessageMax = 200;

std::string collection_path(Resource resource, const std::string& ns) {
  const std::string version = api_version_of(resource);
  const bool is_core = version.find('/') == std::string::npos;
  std::string path = (is_core ? "/api/" : "/apis/") + version;
  if (!ns.empty()) path += "/namespaces/" + percent_encode(ns);
  return path + "/" + to_string(resource);
}

void add_parameter(std::string& target, const char* name, const std::string& value) {
  if (value.empty()) return;
  target += target.find('?') == std::string::npos ? '?' : '&';
  target += name + ("=" + percent_encode(value));
}

Code code_of(int status) {
  switch (status) {
    case 404: return Code::not_found;
    case 409: return Code::conflict;
    case 410: return Code::gone;
    case 401:
    case 403: return Code::forbidden;
    case 408:
    case 429: return Code::unavailable;
    default: break;
  }
  if (status >= 500) return Code::unavailable;
  return status >= 400 ? Code::forbidden : Code::internal;
}

/// The API server's own validation names the fields, and its answer stays the same. An admission
/// webhook's denial is a 400 if it says nothing else, and may say 422, as an admission policy does:
/// what they deny may pass later (k8s.io/apiserver, webhook/errors and apierrors.NewInvalid).
bool is_final(const HttpAnswer& answer, const json& status) {
  const json& causes = array_at(object_at(status, "details"), "causes");
  const bool names_fields =
      !causes.empty() && std::all_of(causes.begin(), causes.end(), [](const json& cause) {
        return !string_at(cause, "field").empty();
      });
  const bool is_of_webhook = string_at(status, "message").starts_with("admission webhook ");
  return answer.status == 422 && string_at(status, "reason") == "Invalid" && names_fields &&
         !is_of_webhook;
}

/// What is shown of a body that is no Status.
std::string body_begin(const std::string& body) {
  return std::string(utf8_prefix(with_invalid_utf8_replaced(body.substr(0, kBodyInMessageMax)),
                                 kBodyInMessageMax));
}

std::optional<std::chrono::milliseconds> seconds_in(const std::string& text) {
  std::int32_t seconds = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  if (read.ec != std::errc{} || read.ptr != end || seconds < 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

HttpCall log_call(const WatchRequest& request) {
  const LogOptions& log = *request.log;
  HttpCall call{.target = collection_path(request.resource, request.ns) + "/" +
                          percent_encode(request.name) + "/log"};
  add_parameter(call.target, "container", log.container);
  add_parameter(call.target, "follow", log.follow ? "true" : "");
  add_parameter(call.target, "previous", log.previous ? "true" : "");
  add_parameter(call.target, "timestamps", log.timestamps ? "true" : "");
  add_parameter(call.target, "sinceTime", log.since_time);
  add_parameter(call.target, "tailLines", log.tail_lines ? std::to_string(*log.tail_lines) : "");
  return call;
}

}  // namespace

std::string percent_encode(const std::string& text) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool digit = c >= '0' && c <= '9';
    if (letter || digit || c == '-' || c == '.' || c == '_' || c == '~') {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return encoded;
}

HttpCall http_call(const Request& request) {
  HttpCall call{.target = collection_path(request.resource, request.ns)};
  if (!request.name.empty()) call.target += "/" + percent_encode(request.name);
  switch (request.verb) {
    case Verb::get: break;
    case Verb::list:
      add_parameter(call.target, "labelSelector", request.label_selector);
      add_parameter(call.target, "fieldSelector", request.field_selector);
      add_parameter(call.target, "limit", std::to_string(request.limit));
      add_parameter(call.target, "continue", request.continue_token);
      break;
    case Verb::create:
      call.method = "POST";
      call.content_type = "application/json";
      break;
    case Verb::replace:
      call.method = "PUT";
      call.content_type = "application/json";
      break;
    case Verb::patch:
    case Verb::patch_status:
      call.method = "PATCH";
      call.content_type = "application/merge-patch+json";
      if (request.verb == Verb::patch_status) call.target += "/status";
      break;
    case Verb::remove:
      call.method = "DELETE";
      call.content_type = "application/json";
      break;
  }
  return call;
}

HttpCall http_call(const WatchRequest& request) {
  if (request.log) return log_call(request);
  HttpCall call{.target = collection_path(request.resource, request.ns)};
  add_parameter(call.target, "watch", "true");
  add_parameter(call.target, "allowWatchBookmarks", "true");
  add_parameter(call.target, "labelSelector", request.label_selector);
  add_parameter(call.target, "resourceVersion", request.resource_version);
  add_parameter(call.target, "timeoutSeconds", std::to_string(request.timeout.count()));
  return call;
}

Result<std::string> read_answer(HttpAnswer answer, const std::string& subject) {
  if (answer.status >= 200 && answer.status < 300) return std::move(answer.body);
  Error error{code_of(answer.status), "", subject, seconds_in(answer.retry_after)};
  const json status = parse(answer.body);
  const bool from_api_server = string_at(status, "kind") == "Status";
  if (from_api_server) {
    if (is_final(answer, status)) error.code = Code::invalid;
    error.message = string_at(status, "message");
    if (!error.retry_after) error.retry_after = retry_after_of(status);
  }
  // A 404 of a proxy, or of a server that has not loaded our CRD yet, says nothing about the
  // object.
  if (!from_api_server && error.code != Code::forbidden) error.code = Code::unavailable;
  const std::string code = "HTTP " + std::to_string(answer.status);
  if (error.message.empty()) {
    error.message = code + ": " + body_begin(answer.body);
  } else if (answer.status == 401) {
    error.message =
        code + ": " + error.message + " (the server does not accept our certificate or token)";
  }
  return error;
}

}  // namespace tj
