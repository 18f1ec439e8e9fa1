// Reads the small files that credentials live in.
#pragma once
#include <cstddef>
#include <string>

#include "contract/result.h"

namespace tj {

inline constexpr std::size_t kCredentialFileBytesMax = 1024 * 1024;

/// The whole file. Fails with not_found, forbidden or invalid (too large, not a file); the error's
/// subject is the path.
Result<std::string> read_file_text(const std::string& path);

/// `text` without white space at both ends.
std::string trimmed(const std::string& text);

}  // namespace tj
