// A Kubernetes API server in memory behind the KubeApi seam: what `tj run` talks to, and the fake
// of the tests. Deterministic: it has no thread, no timer and no clock of its own. Requests take
// effect in the order in which the given post function runs them; their answers and the watch lines
// come as further posts.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/local/log_store.h"
#include "operator/local/object_store.h"

namespace tj {

/// What a test may do to a request.
struct RequestFault {
  enum class Kind {
    fail_before,  // the server never saw it
    fail_after,   // it took effect, the answer is lost: `error` comes instead
    hold_answer,  // it took effect, the answer waits for release_answers()
  };
  Kind kind = Kind::fail_before;
  Error error;
};

enum class LineFault {
  none,
  drop,       // this line never comes
  duplicate,  // it comes twice
  delay,      // it and all after it wait for release_lines(): a stream keeps its order
};

class MemoryApi final : public KubeApi {
 public:
  /// Runs a function later, in order, never inside the call: asio::post of the loop, or a queue
  /// that a test turns.
  using Post = std::function<void(std::function<void()>)>;
  using RequestFaultHook = std::function<std::optional<RequestFault>(const Request&)>;
  using WatchFaultHook = std::function<std::optional<Error>(const WatchRequest&)>;
  using LineFaultHook = std::function<LineFault(const WatchRequest&, const std::string& line)>;
  using ChangeHandler = std::function<void(const ObjectChange&)>;

  MemoryApi(Post post, ObjectStore::Clock now, ObjectStoreOptions options = {});
  ~MemoryApi() override;
  MemoryApi(const MemoryApi&) = delete;
  MemoryApi& operator=(const MemoryApi&) = delete;

  // May be called from any thread if `post` may; all else belongs to the thread that runs the
  // posted functions.
  void send(Request request, Done done) override;
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override;

  /// Direct and synchronous: for the process runner and for tests. Watches see what is done here.
  ObjectStore& objects() { return store_; }
  /// What the containers of its pods have written; who follows a log is told of each line.
  LogStore& logs() { return logs_; }
  /// A tap that no fault reaches, for the process runner: all changes of a resource, the present
  /// objects first (added).
  std::unique_ptr<WatchStream> subscribe(Resource resource, ChangeHandler handler);

  void set_request_fault(RequestFaultHook hook) { request_fault_ = std::move(hook); }
  void set_watch_fault(WatchFaultHook hook) { watch_fault_ = std::move(hook); }
  void set_line_fault(LineFaultHook hook) { line_fault_ = std::move(hook); }
  void release_answers();
  void release_lines();
  /// A BOOKMARK to each open watch. They also come by themselves, each time half of the history's
  /// length has passed.
  void send_bookmarks();
  /// Ends each open watch: orderly, after a bookmark as at a server's timeout, or with an error as
  /// when a line breaks.
  void end_watches(Result<void> end = {});
  /// Ends each log that is being read: with an error as when a line breaks, or in order, as a proxy
  /// may.
  void end_logs(Result<void> end);
  int log_count() const;
  /// Open watches, of one resource or of all; logs are none.
  int watch_count(std::optional<Resource> resource = {}) const;
  /// Every request that was answered, in order, as "create pods default/a-worker-0": what a test
  /// may assert on.
  const std::vector<std::string>& request_log() const { return request_log_; }

 private:
  struct Stream;
  class StreamHandle;
  void serve(const Request& request, Done done);
  Result<std::string> effect(const Request& request);
  void open(const std::shared_ptr<Stream>& stream);
  void open_log(const std::shared_ptr<Stream>& stream);
  void on_log(const LogKey& key, const LogEntry* entry);
  Result<LogKey> log_key(const WatchRequest& request) const;
  void on_change(const ObjectChange& change);
  void offer(const std::shared_ptr<Stream>& stream, const ObjectChange& change);
  void write_line(const std::shared_ptr<Stream>& stream, std::string line);
  void post_line(const std::shared_ptr<Stream>& stream, std::string line);
  void bookmark(const std::shared_ptr<Stream>& stream);
  void finish(const std::shared_ptr<Stream>& stream, Result<void> end);
  void schedule_garbage_collection();
  std::vector<std::shared_ptr<Stream>> open_streams() const;
  void later(std::function<void()> work);

  Post post_;
  ObjectStore store_;
  LogStore logs_;
  std::uint64_t bookmark_every_versions_;
  std::vector<std::weak_ptr<Stream>> streams_;
  RequestFaultHook request_fault_;
  WatchFaultHook watch_fault_;
  LineFaultHook line_fault_;
  std::vector<std::function<void()>> held_answers_;
  std::vector<std::string> request_log_;
  bool garbage_collection_scheduled_ = false;
  std::shared_ptr<int> alive_ =
      std::make_shared<int>(0);  // posted work does nothing once this object is gone
};

}  // namespace tj
