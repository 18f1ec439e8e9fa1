// What all requests of one RestKubeApi share: the library's clients, who we are, and the way back
// to the loop thread. Private to the rest_*.cc files, like the library itself.
#pragma once
#include <cpprest/http_client.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/rest_kube_api.h"
#include "operator/kube/rest_request.h"
#include "operator/kube/tls_identity.h"
#include "operator/kube/token_source.h"

namespace tj {

/// Lives on the HTTP thread, but for deliver() and close().
class RestConnection : public std::enable_shared_from_this<RestConnection> {
 public:
  RestConnection(const KubeConfig& config, RestKubeApi::Post post, RestOptions options);

  /// From any thread: runs `function` on the loop thread, unless the client is closed by then.
  void deliver(std::function<void()> function);
  /// From any thread: nothing is delivered any more, what is under way is cancelled.
  void close();

  /// A request with all headers, or why there can be none. `token` becomes the one that it carries.
  Result<web::http::http_request> prepare(const HttpCall& call, const std::string& body,
                                          std::string& token);
  /// The server said 401 to `token`: true when there is another one to try.
  bool renew_token(const std::string& token);
  /// "GET https://...": what an error is about.
  std::string subject(const HttpCall& call) const;
  Error failure(const std::exception& error, const std::string& about);

  const RestOptions& options() const { return options_; }
  web::http::client::http_client& requests() { return *requests_; }
  /// Apart from the others, so that streams that last never take a connection from them.
  web::http::client::http_client& watches() { return *watches_; }

  void began(pplx::cancellation_token_source* source) { under_way_.insert(source); }
  void ended(pplx::cancellation_token_source* source) { under_way_.erase(source); }

 private:
  const RestOptions options_;
  TokenSource token_;
  std::string server_;
  std::string tls_server_name_;
  std::shared_ptr<TlsIdentity> identity_;
  std::optional<Error> unusable_;
  std::unique_ptr<web::http::client::http_client> requests_;
  std::unique_ptr<web::http::client::http_client> watches_;
  std::set<pplx::cancellation_token_source*> under_way_;

  std::mutex mutex_;        // guards post_
  RestKubeApi::Post post_;  // empty once closed
  std::atomic<bool> closed_{false};
};

void start_call(std::shared_ptr<RestConnection> connection, Request request, KubeApi::Done done);
/// The stream must be destroyed on the loop thread.
std::unique_ptr<WatchStream> start_stream(std::shared_ptr<RestConnection> connection,
                                          const WatchRequest& request, WatchHandler handler);

using ResponseBytes = std::vector<unsigned char>;
std::string text_of(const ResponseBytes& bytes);
/// "" where there is none.
std::string header_of(const web::http::http_response& response, const char* name);

}  // namespace tj
