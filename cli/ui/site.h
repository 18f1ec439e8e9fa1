// The page as HTTP: judges who asks (gate.h), then answers with a file of the page, or with a
// document of its own small interface, which is read-only:
//
//   GET /api/session                        whether one signs in here (no: the token is enough)
//   GET /api/jobs                           the list
//   GET /api/jobs/NAMESPACE/NAME            one job; ?from=&count= which ranks
//   GET /api/jobs/NAMESPACE/NAME/series     loss, rate and goodput over time
//   GET /api/jobs/NAMESPACE/NAME/log        a rank's log as server-sent events; ?rank=&attempt=
#pragma once
#include <memory>
#include <string>
#include <variant>

#include "cli/ui/board.h"
#include "cli/ui/feed.h"
#include "cli/ui/gate.h"
#include "operator/loop/http_server.h"

namespace tj::ui {

// Where a path leads.
struct ToFile {
  std::string path;
  bool operator==(const ToFile&) const = default;
};
struct ToJobs {
  bool operator==(const ToJobs&) const = default;
};
struct ToJob {
  ObjectKey job;
  bool operator==(const ToJob&) const = default;
};
struct ToSeries {
  ObjectKey job;
  bool operator==(const ToSeries&) const = default;
};
struct ToLog {
  ObjectKey job;
  bool operator==(const ToLog&) const = default;
};
struct ToSession {
  bool operator==(const ToSession&) const = default;
};
struct Nowhere {
  bool operator==(const Nowhere&) const = default;
};
using Route = std::variant<Nowhere, ToFile, ToSession, ToJobs, ToJob, ToSeries, ToLog>;
/// `target` is path and query, as they came.
Route route_of(const std::string& target);

class Site {
 public:
  static constexpr int kConnectionsMax = 64;
  static constexpr int kLogsMax = 16;  // at once

  Site(const Board& board, Feed& feed) : board_(board), feed_(feed) {}
  HttpReply answer(const HttpQuestion& question, const Gate& gate);
  /// To somebody who has been judged already; without the headers of add_safe_headers().
  HttpReply answer_allowed(const HttpQuestion& question);

 private:
  HttpReply jobs();
  HttpReply job(const HttpQuestion& question, const ObjectKey& key);
  HttpReply series(const ObjectKey& key);
  HttpReply log(const HttpQuestion& question, const ObjectKey& key);

  const Board& board_;
  Feed& feed_;
  std::shared_ptr<int> logs_ = std::make_shared<int>(0);
};

}  // namespace tj::ui
