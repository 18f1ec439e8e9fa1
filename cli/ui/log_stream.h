// The log of one worker as a stream of server-sent events, for one reader: what is there, and then
// what comes. A page shows it and keeps nothing, so that a reader who is too slow for a cluster's
// log loses lines, and is told how many.
#pragma once
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/api/types.h"
#include "operator/kube/kube_api.h"
#include "operator/loop/http_server.h"

namespace tj::ui {

struct LogQuestion {
  ObjectKey job;
  int rank = 0;
  int attempt = 0;
  std::string last_id;  // what the reader saw last, when it comes again after a break
};

inline constexpr std::size_t kLogTailBytes = 256 * 1024;  // of what was there before
inline constexpr int kLogTailLines = 2'000;               // the same, of a cluster's log
inline constexpr std::size_t kLogLineBytesMax = 4 * 1024;
inline constexpr std::size_t kLogQueueLinesMax = 5'000;
inline constexpr std::size_t kLogQueueBytesMax = 1024 * 1024;

/// Lines as one event: `id` names the place after them. What is no UTF-8 is replaced.
std::string lines_event(const std::vector<std::string>& lines, const std::string& id,
                        std::size_t lost = 0);
/// The log has ended; the reader need not come again.
std::string end_event(const std::string& why);
/// Says nothing; that it can't be written shows that the reader has gone.
inline constexpr const char* kHeartbeat = ": \n\n";

/// Of a file that may not be there yet, and grows until `has_ended()` says so.
std::unique_ptr<HttpStream> follow_file(boost::asio::io_context& loop, std::filesystem::path file,
                                        const LogQuestion& question,
                                        std::function<bool()> has_ended);

/// Where the log of a rank's attempt is written.
struct PodPlace {
  std::string container;
  std::string uid;  // of the pod; empty: whichever has the name
  std::function<bool()> has_ended;
};

/// Of a pod, through the API server: each line once, also where its reader comes again after a
/// break, but for those that were too fast.
std::unique_ptr<HttpStream> follow_pod(boost::asio::io_context& loop, KubeApi& api,
                                       const LogQuestion& question, PodPlace place);

/// There is none, and why.
std::unique_ptr<HttpStream> no_log(std::string why);

}  // namespace tj::ui
