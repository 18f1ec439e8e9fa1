// One request and one stream over a ClusterLink, from their start to their last callback. Private
// to cli/cluster.
#pragma once
#include <cstdint>
#include <memory>

#include "cli/cluster/cluster_link.h"
#include "operator/kube/kube_api.h"

namespace tj {

inline constexpr std::uint32_t kHeaderBytesMax = 64 * 1024;  // of an answer

/// `ended` comes on the loop, before `done`.
void start_call(std::shared_ptr<ClusterLink> link, Request request, KubeApi::Done done,
                std::function<void()> ended);
std::unique_ptr<WatchStream> start_stream(std::shared_ptr<ClusterLink> link,
                                          const WatchRequest& request, WatchHandler handler);

}  // namespace tj
