// Base64 of RFC 4648, as HTTP's headers want it.
#pragma once
#include <string>

namespace tj {

std::string base64(const std::string& bytes);

}  // namespace tj
