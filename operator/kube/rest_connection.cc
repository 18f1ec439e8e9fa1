#include "operator/kube/rest_connection.h"

#include <boost/asio/post.hpp>
#include <chrono>

#include "operator/kube/http_thread.h"

namespace tj {
namespace http = web::http;
namespace {
/// The library's own timeouts only back up ours, which bound the whole request.
constexpr std::chrono::seconds kLibraryTimeout{3600};
}  // namespace

RestConnection::RestConnection(const KubeConfig& config, RestKubeApi::Post post,
                               RestOptions options)
    : options_(std::move(options)),
      token_(config.token, config.token_file),
      server_(config.server),
      tls_server_name_(config.tls_server_name),
      post_(std::move(post)) {
  while (server_.ends_with('/')) server_.pop_back();
  Result<std::shared_ptr<TlsIdentity>> identity = TlsIdentity::load(config);
  if (!identity) {
    unusable_ = Error{Code::unavailable, describe(identity.error()), server_, {}};
    return;
  }
  identity_ = *identity;
  http::client::http_client_config library;
  library.set_timeout(kLibraryTimeout);
  library.set_max_redirects(0);
  library.set_validate_certificates(true);
  library.set_ssl_context_callback([shared = identity_](boost::asio::ssl::context& context) {
    shared->apply(context.native_handle());
  });
  try {
    requests_ = std::make_unique<http::client::http_client>(web::uri(server_), library);
    watches_ = std::make_unique<http::client::http_client>(web::uri(server_), library);
  } catch (const std::exception& error) {
    unusable_ = Error{
        Code::unavailable, std::string("is no URL of a server: ") + error.what(), server_, {}};
  }
}

void RestConnection::deliver(std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  if (!post_) return;
  post_([self = shared_from_this(), function = std::move(function)] {
    if (!self->closed_) function();
  });
}

void RestConnection::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    post_ = nullptr;
  }
  boost::asio::post(http_thread(), [self = shared_from_this()] {
    // Cancelling may complete a request at once, which takes it out of the set.
    const auto under_way = self->under_way_;
    for (pplx::cancellation_token_source* source : under_way) {
      if (self->under_way_.contains(source)) source->cancel();
    }
  });
}

Result<http::http_request> RestConnection::prepare(const HttpCall& call, const std::string& body,
                                                   std::string& token) {
  if (unusable_) return *unusable_;
  Result<std::string> current = token_.current(std::chrono::steady_clock::now());
  // The file's own code must not leave here: a token that is not found is not a pod that is not
  // found.
  if (!current) return Error{Code::forbidden, describe(current.error()), server_, {}};
  token = *current;
  http::http_request request(call.method);
  request.set_request_uri(call.target);
  auto& headers = request.headers();
  headers.add("Accept", "application/json");
  headers.add("User-Agent", options_.user_agent);
  if (!token.empty()) headers.add("Authorization", "Bearer " + token);
  // The library takes the name to verify, and SNI, from this header where it is given.
  if (!tls_server_name_.empty()) headers.add("Host", tls_server_name_);
  if (!body.empty()) request.set_body(body, call.content_type);
  return request;
}

bool RestConnection::renew_token(const std::string& token) {
  return token_.refresh(token, std::chrono::steady_clock::now());
}

std::string RestConnection::subject(const HttpCall& call) const {
  return call.method + (" " + server_) + call.target;
}

Error RestConnection::failure(const std::exception& error, const std::string& about) {
  return http_failure(error, identity_ ? identity_->take_refusal() : "", about);
}

std::string text_of(const ResponseBytes& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string header_of(const http::http_response& response, const char* name) {
  const auto found = response.headers().find(name);
  return found == response.headers().end() ? std::string() : found->second;
}

}  // namespace tj
