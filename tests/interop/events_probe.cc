// Writes one event of each kind, for tests/interop/events.py to read with TensorBoard's own reader:
// events_probe FOLDER PNG
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "trainer/report/event_file.h"
#include "trainer/report/event_messages.h"

using namespace tj::trainer;

namespace {

constexpr double kTime = 1'700'000'000.5;

int write(const std::string& folder, const std::string& png_path) {
  std::ostringstream png;
  png << std::ifstream(png_path, std::ios::binary).rdbuf();
  const std::string bytes = png.str();
  auto file = EventFile::create(folder, "host");
  if (!file) {
    std::cerr << describe(file.error()) << "\n";
    return 1;
  }
  const Setting settings[] = {{"lr", "0.003", "flag"}, {"schedule", "cosine", "default"}};
  const std::string_view metrics[] = {"loss"};
  const double values[] = {1, 2, 2, 3, 11, std::numeric_limits<double>::infinity()};
  auto& events = **file;
  for (int step = 1; step <= 3; ++step) {
    const ScalarValue scalars[] = {{"loss", 4.0 / step}, {"lr", 1e-3 * step}};
    events.add(scalars_event({kTime + step, step}, scalars));
  }
  events.add(text_event({kTime, 0}, "settings", "| a |\n|---|\n| \xc3\xbc |\n"));
  events.add(histogram_event({kTime, 2}, "norms", values));
  events.add(image_event({kTime, 3}, "picture", {.width = 2, .height = 1, .bytes = bytes}));
  events.add(hparams_experiment_event({kTime, 0}, settings, metrics));
  events.add(hparams_event({kTime, 0}, settings));
  events.add(hparams_end_event({kTime + 9, 3}, SessionStatus::success));
  return events.flush() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return write(argv[1], argv[2]);
  std::cerr << "events_probe FOLDER PNG\n";
  return 2;
}
