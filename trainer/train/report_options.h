// What of the plan the reporter is told.
#pragma once
#include "trainer/report/reporter.h"
#include "trainer/train/plan.h"

namespace tj::trainer {

/// Needs a plan with its vocabulary settled.
ReportOptions report_options(const TrainPlan& plan);

}  // namespace tj::trainer
