// Counts what the View holds, for a scrape.
#pragma once
#include <chrono>

#include "operator/loop/metrics.h"
#include "operator/loop/view.h"

namespace tj {

/// A pod that is still there so long after it should have ended is stuck: its node is silent, or a
/// finalizer holds it.
inline constexpr std::chrono::minutes kStuckAfter{5};

/// All but the queue's depth. Jobs that another controller looks after are not counted.
Gauges count_gauges(const View& view, TimePoint now);

}  // namespace tj
