// What the speed of a run counts.
#pragma once
#include <string>

namespace tj::trainer {

struct Unit {
  std::string name = "samples";  // plural; in files and on pages: a-z and _
  std::string short_name = "samples";
};

}  // namespace tj::trainer
