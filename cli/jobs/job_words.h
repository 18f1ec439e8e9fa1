// The words in the cells of tables about jobs. Pure.
#pragma once
#include <optional>
#include <string>

#include "cli/jobs/job_text.h"

namespace tj::job_words {

/// How long `time` is ago; "" where it is not known.
std::string ago(const std::optional<TimePoint>& time, TimePoint now);
std::string ready(const JobView& view);     // "2/2"
std::string reason(const JobView& view);    // in one word
std::string progress(const JobView& view);  // "120/1000 (12%)"
std::string loss(const JobView& view);
/// What is left of the time that rank 0 told, by its own clock; "" once nothing runs.
std::string eta(const JobView& view);

std::string phase_of(const Pod& pod);  // a pod that is asked to go is Terminating
/// Why it does not run, or how it ended.
std::string note_on(const JobView& view, const Pod& pod);
/// It runs, is ready, and stays.
bool is_ordinary(const Pod& pod);

}  // namespace tj::job_words
