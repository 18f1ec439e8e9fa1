// The manual page of a program, from its options: what --help says of each command, one after the
// other. Pure.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace tj {

/// man(7) for section 1. Hidden commands and options are left out.
std::string man_page(const CLI::App& app);

}  // namespace tj
