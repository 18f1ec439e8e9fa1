#pragma once
#include <string>

namespace tj {

/// The checkout that the test was compiled in. A function, so that one source names the folder and
/// ccache knows all others again in another checkout.
std::string source_dir();

}  // namespace tj
