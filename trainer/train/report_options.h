// What of the plan the reporter is told.
#pragma once
#include "trainer/report/reporter.h"
#include "trainer/train/plan.h"

namespace tj::trainer {

ReportOptions report_options(const TrainPlan& plan, const Workload& workload);

}  // namespace tj::trainer
