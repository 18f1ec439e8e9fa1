// Metrics of a local run: nobody scrapes them: nothing is counted, and tj needs no library for it.
// The operator's own, which count for Prometheus, are in operator/loop/metrics.cc.
#include "operator/loop/metrics.h"

namespace tj {

class Metrics::Impl {};

Metrics::Metrics() = default;
Metrics::~Metrics() = default;

void Metrics::count_request(Verb /*verb*/, Resource /*resource*/, const std::string& /*code*/) {}
void Metrics::count_poll(PollResult /*result*/) {}
void Metrics::count_watch_restart(Resource /*resource*/, const std::string& /*reason*/) {}
void Metrics::observe_reconcile(std::chrono::duration<double> /*seconds*/) {}
void Metrics::count_status(const JobStatus& /*before*/, const JobStatus& /*after*/) {}
void Metrics::set_gauge_source(std::function<Gauges()> /*source*/) {}
std::string Metrics::text() { return {}; }

}  // namespace tj
