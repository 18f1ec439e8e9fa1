#include "trainer/train/command.h"

#include <sys/resource.h>
#include <torch/types.h>

#include <algorithm>

#include "trainer/process/ending.h"
#include "trainer/process/failed_writes.h"
#include "trainer/process/heap.h"
#include "trainer/process/lines.h"
#include "trainer/process/stop_request.h"
#include "trainer/train/cudnn.h"
#include "trainer/train/device_memory.h"
#include "trainer/train/flags.h"
#include "trainer/train/plugin_kernels.h"
#include "trainer/train/process_setup.h"
#include "trainer/workload/flag_reader.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kThreadsMax = 1024;

/// A command is a process alone, whatever variables are set.
int fail(const Failure& failure) { return end_with(failure, ProcessEnv{}, {}); }

/// What the flags of all commands say.
struct Place {
  DeviceChoice device = DeviceChoice::automatic;
  Precision precision = Precision::fp32;
  bool is_precision_given = false;
  int threads = 0;  // 0: not said
};

Result<Place> read_place(const Flags& flags) {
  FlagReader reader(flags);
  Place place{.is_precision_given = reader.is_given("--precision")};
  place.device = reader.choice("--device", "auto", "auto, cpu or cuda", device_choice_from);
  place.precision = reader.choice("--precision", "fp32", "fp32, bf16 or fp16", precision_from);
  if (reader.is_given("--threads"))
    place.threads = static_cast<int>(reader.whole("--threads", {"1"}, {1, kThreadsMax}));
  if (reader.error()) return *reader.error();
  return place;
}

/// For people, and for whoever measures.
std::string memory_line(std::optional<int> gpu) {
  constexpr double kMegabyte = 1e6, kKilobyte = 1024;  // getrusage(2) counts in the latter
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  char line[96];
  std::snprintf(line, sizeof line, "peak memory: %.0f MB of the process",
                static_cast<double>(used.ru_maxrss) * kKilobyte / kMegabyte);
  const auto tensors = peak_tensor_bytes(device_of(gpu));
  if (!tensors) return line;
  char more[64];
  std::snprintf(more, sizeof more, ", %.0f MB of tensors on cuda:%d",
                static_cast<double>(*tensors) / kMegabyte, *gpu);
  return std::string(line) + more;
}

/// On a GPU in fp16 unless a flag says otherwise: of what its tensor cores can do it keeps most of
/// a number that is not larger than 65504.
int run_at(const WorkloadCommand& command, const Flags& flags, const Place& place) {
  const auto found = accelerator_for(place.device, ProcessEnv{});
  if (!found) return fail(bad_config(found.error()));
  use_kernels_of(*found);
  set_up_cudnn(CudnnChoice::by_rule);  // a video may be short
  const bool is_half = found->gpu() && !place.is_precision_given;
  const CommandCall call{.flags = flags,
                         .gpu = found->gpu(),
                         .precision = is_half ? Precision::fp16 : place.precision};
  const at::NoGradGuard no_gradients;
  if (const auto failure = command.run(call)) return fail(*failure);
  (command.prints_result ? say_error : say)(memory_line(call.gpu));
  return exit_code::kDone;
}

}  // namespace

bool is_workload_command(Registry registry, std::string_view name) {
  return std::ranges::any_of(
      registry, [&](const WorkloadEntry& entry) { return find_command(entry, name) != nullptr; });
}

int run_command(int argc, const char* const* argv, Registry registry) {
  keep_freed_memory();
  catch_stop_signals();
  outlive_file_size_limits();
  const std::string_view name = argv[0];
  const auto choice = choose_command(registry, name, model_flag(argc, argv));
  if (!choice) return fail(bad_config(choice.error()));
  const auto& command = *find_command(*choice->entry, name);
  const auto parsed = parse_command_flags(argc, argv, *choice->entry, command);
  if (!parsed)
    return fail({.exit_code = exit_code::kUsage,
                 .reason = "BadUsage",
                 .message = describe(parsed.error())});
  if (parsed->shown) {
    say(*parsed->shown);
    return exit_code::kDone;
  }
  const auto place = read_place(parsed->flags);
  if (!place) return fail(bad_config(place.error()));
  choose_threads(place->threads, ProcessEnv{});
  try {
    return run_at(command, parsed->flags, *place);
  } catch (const std::exception& exception) {
    return fail(failure_of(exception));
  }
}

}  // namespace tj::trainer
