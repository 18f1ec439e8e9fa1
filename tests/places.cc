#include "tests/places.h"

namespace tj {

std::string source_dir() { return TJ_SOURCE_DIR; }

}  // namespace tj
