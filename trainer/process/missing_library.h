// Which library is missing where the loader says that one is, and what brings it. Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tj::trainer {

/// Of dlerror()'s words, "libx.so.1: cannot open shared object file: No such file or directory",
/// the library: that which was asked for, or one that it needs. Absent where something else is
/// wrong.
std::optional<std::string> missing_library(std::string_view words);

/// The Debian package of a library, by the rule for their names: libavcodec.so.59 -> libavcodec59,
/// libpng16.so.16 -> libpng16-16 (Debian Policy, section 8.1). Empty where it has no version.
std::string debian_package_of(std::string_view library);

}  // namespace tj::trainer
