// What a save cost, in words and as lines of metrics.jsonl.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "trainer/checkpoint/interference.h"

namespace tj::trainer {

struct SaveReport {
  std::int64_t step = 0;
  std::filesystem::path path;
  double stall_seconds = 0;    // the training stood still for it
  double written_seconds = 0;  // from its beginning until it was committed
};

/// checkpoint out/step-000300 | stall 1.2 ms | written in 3.45 s
std::string save_line(const SaveReport& report);
/// {"event":"checkpoint","saved_step":300,...}: no line of a step, which has "step".
std::string save_json(const SaveReport& report);
/// checkpoint of step 300 | next 10 steps +0.8 %
std::string interference_line(const InterferenceReport& report);
/// {"event":"interference","saved_step":300,"steps":10,"percent":1.2}
std::string interference_json(const InterferenceReport& report);

}  // namespace tj::trainer
