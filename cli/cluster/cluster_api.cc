#include "cli/cluster/cluster_api.h"

#include <deque>
#include <utility>

#include "cli/cluster/cluster_call.h"
#include "cli/cluster/cluster_link.h"

namespace tj {
struct ClusterApi::Waiting {
  struct Entry {
    Request request;
    Done done;
  };
  std::deque<Entry> entries;
  int running = 0;

  static void start_next(const std::shared_ptr<Waiting>& self,
                         const std::shared_ptr<ClusterLink>& link) {
    while (self->running < ClusterLink::kCallsMax && !self->entries.empty() && !link->closed()) {
      Entry next = std::move(self->entries.front());
      self->entries.pop_front();
      ++self->running;
      start_call(link, std::move(next.request), std::move(next.done), [self, link] {
        --self->running;
        start_next(self, link);
      });
    }
  }
};

ClusterApi::ClusterApi(boost::asio::io_context& loop, const KubeConfig& config, const EnvText& env,
                       RestOptions options)
    : link_(std::make_shared<ClusterLink>(loop, config, env, std::move(options))),
      waiting_(std::make_shared<Waiting>()) {}

ClusterApi::~ClusterApi() { link_->close(); }

void ClusterApi::send(Request request, Done done) {
  waiting_->entries.push_back({std::move(request), std::move(done)});
  Waiting::start_next(waiting_, link_);
}

std::unique_ptr<WatchStream> ClusterApi::watch(WatchRequest request, WatchHandler handler) {
  return start_stream(link_, request, std::move(handler));
}

}  // namespace tj
