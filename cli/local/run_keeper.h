// Keeps the objects of a `tj run` in its folder: gathers them as they change and writes the file a
// few times a second at most, and once at the end. What ends with the run stays as it was last.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "cli/local/run_folder.h"
#include "operator/local/memory_api.h"

namespace tj {

class RunKeeper {
 public:
  static constexpr std::chrono::milliseconds kWriteWait{250};
  static constexpr std::size_t kEventsMax = 1'000;  // the newest are kept

  RunKeeper(boost::asio::io_context& loop, MemoryApi& api, std::filesystem::path folder);
  RunKeeper(const RunKeeper&) = delete;
  RunKeeper& operator=(const RunKeeper&) = delete;

  /// From now on what is deleted is kept as it was: the run is being ended.
  void keep_deleted() { keeps_deleted_ = true; }
  /// Writes what is known, now. The first error of any write.
  Result<void> finish();

 private:
  void follow(Resource resource);
  void take(const ObjectChange& change);
  void write_in_turn();
  void write();
  RunObjects objects() const;

  MemoryApi& api_;
  std::filesystem::path folder_;
  boost::asio::steady_timer timer_;
  std::map<Resource, std::map<ObjectKey, ObjectPtr>> objects_;
  std::deque<ObjectKey> event_keys_;  // the oldest first
  std::vector<std::unique_ptr<WatchStream>> streams_;
  bool keeps_deleted_ = false;
  bool has_news_ = false;
  bool waits_ = false;  // for the turn of the next write
  Result<void> failure_;
};

}  // namespace tj
