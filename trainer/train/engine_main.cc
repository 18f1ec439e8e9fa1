// What `trainer-engine` does by its first argument.
#include <c10/util/Logging.h>
#include <unistd.h>

#include <string_view>

#include "contract/launch_env.h"
#include "trainer/check/engine_part.h"
#include "trainer/train/command.h"
#include "trainer/train/engine.h"
#include "trainer/train/plan_command.h"

namespace tj::trainer {
namespace {

/// c10d writes a stack for each answer that the store of a lost rank 0 still owes, on any thread:
/// at times below the last line, which is the cause. TORCH_CPP_LOG_LEVEL brings it back.
void silence_warnings_of_torch() {
  if (!process_env("TORCH_CPP_LOG_LEVEL")) FLAGS_caffe2_log_level = c10::GLOG_ERROR;
}

}  // namespace

void engine_main(int argc, const char* const* argv, Registry registry) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  silence_warnings_of_torch();
  // Everything said is written, and everything saved is on the disk: static destructors could only
  // be slow. A run that met its other ranks has ended in end_process() already.
  if (command == "check") ::_exit(run_check_engine());
  if (command == "describe-data") ::_exit(describe_data(argc - 1, argv + 1, registry));
  if (command == "plan") ::_exit(run_plan(argc - 1, argv + 1, registry));
  if (is_workload_command(registry, command)) ::_exit(run_command(argc - 1, argv + 1, registry));
  const int skipped = command == "train" ? 1 : 0;
  ::_exit(run_engine(argc - skipped, argv + skipped, registry));
}

}  // namespace tj::trainer
