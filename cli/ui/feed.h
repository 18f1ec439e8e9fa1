// Where the page's facts come from: watches on an API server (a cluster's, or that of a local run
// in memory) that feed the board, the events of the job that is looked at, and logs.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/ui/board.h"
#include "cli/ui/log_stream.h"
#include "cli/ui/run_files.h"
#include "operator/kube/kube_api.h"
#include "operator/local/memory_api.h"
#include "operator/loop/alarm.h"
#include "operator/loop/watch_driver.h"

namespace tj::ui {

TimePoint wall_clock();

/// Follows one API server: jobs and their pods by watches, events by lists while somebody looks.
class Follower {
 public:
  static constexpr std::chrono::seconds kEventsEvery{3};

  /// An empty namespace means all of them.
  Follower(boost::asio::io_context& loop, KubeApi& api, Board& board, const std::string& ns);
  ~Follower();
  void start();
  /// Somebody looks at this job: its events are listed, unless that was done just now.
  void look_at(const ObjectKey& job);
  /// What is wrong with the connection; empty: nothing.
  std::string problem() const;
  bool synced() const { return jobs_.synced() && pods_.synced(); }
  /// Called after a complete first list of jobs and pods, and after each change that follows.
  void on_news(std::function<void()> news) { news_ = std::move(news); }

 private:
  WatchEvents events_of(void (Board::*apply)(const WatchDelta&, TimePoint), Resource resource);
  void list_events(const ObjectKey& job);

  KubeApi& api_;
  Board& board_;
  Alarm alarm_;
  std::map<Resource, std::string> problems_;
  std::map<ObjectKey, SteadyTime> listed_at_;
  std::function<void()> news_;
  WatchDriver jobs_;
  WatchDriver pods_;
  bool pods_started_ = false;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

/// What the server of the page asks for.
class Feed {
 public:
  virtual ~Feed() = default;
  virtual void start() = 0;
  /// "cluster https://...", "local runs": for people.
  virtual std::string name() const = 0;
  virtual std::string problem() const = 0;
  /// A job's page asks about it; the board is as fresh as it can be afterwards.
  virtual void look_at(const ObjectKey& job) = 0;
  /// The list of jobs asks.
  virtual void look_at_all() = 0;
  virtual std::unique_ptr<HttpStream> open_log(const LogQuestion& question) = 0;
};

/// A cluster. `api` calls back on `loop`, and outlives the feed.
std::unique_ptr<Feed> cluster_feed(boost::asio::io_context& loop, KubeApi& api, Board& board,
                                   std::string ns, std::string name);

/// Local runs: the folders that `tj run` has written into; empty: those of its registry.
std::unique_ptr<Feed> local_feed(boost::asio::io_context& loop, Board& board,
                                 std::vector<std::filesystem::path> folders);

}  // namespace tj::ui
