// A binary PPM picture (netpbm.sourceforge.net/doc/ppm.html): the format that needs no library.
#pragma once
#include "trainer/data/video/video.h"

namespace tj::trainer {

/// A video of one frame. Fails with Code::invalid and the file.
Result<std::unique_ptr<Video>> open_ppm_picture(const std::filesystem::path& file);

/// Writes one, over what is there. Fails as the disk says.
Result<void> write_ppm_picture(const std::filesystem::path& file, const VideoShape& shape,
                               std::span<const std::byte> rgb);

}  // namespace tj::trainer
