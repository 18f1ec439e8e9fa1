// The trainer with a pi0 that learns from samples that are made up as it runs, of which the right
// actions are known. --data names a file that says how many there are.
#include <charconv>

#include "tests/trainer/pi0/colour_samples.h"
#include "trainer/process/durable_file.h"
#include "trainer/train/engine.h"
#include "trainer/workloads/pi0/pi0_workload.h"
#include "trainer/workloads/registry.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kFileBytesMax = 100;

OpenedData open_colours(const DataPaths& data, Pi0Config& config) {
  const auto text = read_small_file(data.paths.front(), kFileBytesMax);
  if (!text) return {.source = {}, .failure = bad_data(text.error())};
  std::int64_t count = 0;
  std::from_chars(text->data(), text->data() + text->size(), count);
  return {.source = std::make_unique<ColourSamples>(config, count)};
}

}  // namespace
}  // namespace tj::trainer

int main(int argc, char** argv) {
  using namespace tj::trainer;
  const WorkloadEntry entries[] = {{.name = "pi0",
                                    .title = "a robot policy on colours",
                                    .data_help = "file with the number of samples",
                                    .presets = pi0_presets(),
                                    .flags = pi0_flags(),
                                    .make = [](const Preset& preset) -> std::unique_ptr<Workload> {
                                      return std::make_unique<Pi0Workload>(preset, open_colours);
                                    }}};
  engine_main(argc, argv, entries);
}
