// Whether a name or an address is that of this machine.
#pragma once
#include <string>

#include "contract/result.h"

namespace tj {

/// Asks the name server, for as long as the system does. Fails with Code::not_found where the name
/// has no address.
Result<bool> is_own_address(const std::string& host);

}  // namespace tj
