// `tj logs JOB` in a cluster: which logs there are, what is said where there are none, and those of
// the worker that failed first.
#pragma once
#include "cli/cluster/session.h"
#include "cli/logs/log_printer.h"
#include "cli/logs/logs_options.h"
#include "operator/api/types.h"

namespace tj {

/// Prints what was asked for. False: not all of it could be read, which has been said. The error is
/// of what there is nothing to print for.
Result<bool> show_job_logs(Session& session, LogsOptions options, LogPrinter& printer);

/// What turns --first-failure into a rank of an attempt; the error says that nobody has failed.
Result<LogsOptions> of_first_failure(const TrainingJob& job, LogsOptions options);
/// "worker 2 of attempt 0 on node n1 failed first at ...: exit code 3: disk full".
std::string first_failure_note(const FirstFailure& failure);
/// Its last words, where its log is gone: a line of its rank for each of theirs.
void print_last_words(const FirstFailure& failure, LogPrinter& printer);

}  // namespace tj
