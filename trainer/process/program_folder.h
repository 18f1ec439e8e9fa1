// Where this program lies, and with it what belongs to it: the engine, the plug-ins.
#pragma once
#include <filesystem>

namespace tj::trainer {

/// Empty where /proc does not say it.
std::filesystem::path program_folder();

}  // namespace tj::trainer
