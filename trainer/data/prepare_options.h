// Flags that commands have alike which read text.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace tj::trainer {

/// --format and --field, into what they are bound to.
void add_text_options(CLI::App& app, std::string& format, std::string& field);

}  // namespace tj::trainer
