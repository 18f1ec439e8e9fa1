// A picture as bytes of a PNG file.
#pragma once
#include <string>

#include "contract/result.h"
#include "trainer/values/picture.h"

namespace tj::trainer {

/// Fails with Code::internal and what libpng says.
Result<std::string> png_of(const Picture& picture);

}  // namespace tj::trainer
