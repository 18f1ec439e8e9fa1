// One caller of the page of `tj serve`: a client of the API server with their own token, and a
// board and a feed of what that token may read. Nothing of it is shared with another caller.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "cli/ui/board.h"
#include "cli/ui/feed.h"
#include "cli/ui/site.h"
#include "operator/kube/kube_api.h"

namespace tj::ui {

/// Asks the API server for whom it takes `api`'s requests (SelfSubjectReview). Who is nobody
/// (system:anonymous) is refused, as `forbidden`.
void ask_who_we_are(KubeApi& api, std::function<void(Result<std::string> user)> done);

class Caller {
 public:
  static constexpr std::size_t kUserBytesMax = 253;  // of a name that is shown

  /// Begins to follow at once. An empty namespace means all of them.
  Caller(boost::asio::io_context& loop, std::unique_ptr<KubeApi> api, std::string user,
         std::string ns);
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  const std::string& user() const { return user_; }
  const std::string& ns() const { return ns_; }
  KubeApi& api() { return *api_; }
  bool has_problem() const;
  /// Follows another namespace from now on; what was known is forgotten, and open logs end.
  void choose(std::string ns);
  /// Documents of this caller's own board.
  HttpReply answer(const HttpQuestion& question);
  /// Nothing is followed any more, and open logs end with these words.
  void end(const std::string& why);

 private:
  struct Sight;
  class Log;
  using OpenLogs = std::set<Log*>;

  void end_logs(const std::string& why);

  boost::asio::io_context& loop_;
  std::unique_ptr<KubeApi> api_;
  std::string user_;
  std::string ns_;
  std::shared_ptr<OpenLogs> logs_ = std::make_shared<OpenLogs>();
  std::unique_ptr<Sight> sight_;
};

}  // namespace tj::ui
