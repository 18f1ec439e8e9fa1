// A shared library of ours that is opened only where its work is asked for, as it needs libraries
// that not every machine has.
#pragma once
#include <filesystem>
#include <string>

#include "contract/result.h"

namespace tj::trainer {

struct PluginRequest {
  const std::filesystem::path& path;
  const char* factory;  // the symbol of what makes the plug-in
  const char* program;  // which it must be of the same build as
  /// Why it can't be opened, where a library is missing: the plug-in itself, or one that it needs.
  std::string (*without)(const std::string& missing, bool is_itself);
};

/// The factory's address; the library stays loaded for the rest of the process. Fails with
/// Code::not_found.
Result<void*> open_plugin(const PluginRequest& request);

Error other_build(const PluginRequest& request);

/// `Plugin` has a member `abi`.
template <typename Plugin>
Result<const Plugin*> load_plugin(const PluginRequest& request, int abi) {
  const auto factory = open_plugin(request);
  if (!factory) return factory.error();
  const Plugin* const plugin = reinterpret_cast<const Plugin* (*)()>(*factory)();
  if (plugin->abi != abi) return other_build(request);
  return plugin;
}

}  // namespace tj::trainer
