// Jobs in words: the table of `tj list`, the page of `tj status`, the line of a watch, `tj top` and
// `tj events`. Pure; all that others wrote is made plain.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/api/types.h"

namespace tj {

/// A job with what it owns, as it was at `now`.
struct JobView {
  TrainingJob job;
  std::vector<Pod> pods;  // in order of rank
  bool is_local = false;
  bool has_lost_its_process = false;  // a local run whose tj has ended
  TimePoint now;
};

/// The phase; "Interrupted" of a job that no process is behind any more.
std::string phase_text(const JobView& view);
/// How it ended, or that nothing will change any more.
bool is_over(const JobView& view);

struct ListStyle {
  bool with_namespace = false;
  bool wide = false;
};
/// NAME PHASE READY PROGRESS ATTEMPT RESTARTS REASON AGE, the columns of kubectl; with more of them
/// when it is wide.
std::string list_text(const std::vector<JobView>& views, const ListStyle& style);

/// All there is to say; of many ranks only those that do not simply run.
std::string status_text(const JobView& view);
/// `job mnist: Running (2/2 ready), attempt 0, 120/1000 (12%), loss 3.12`
std::string summary_line(const JobView& view);
/// Rates and ranks, and what is not known.
std::string top_text(const JobView& view);
/// LAST TYPE REASON OBJECT MESSAGE
std::string events_text(const std::vector<nlohmann::json>& events, TimePoint now);

}  // namespace tj
