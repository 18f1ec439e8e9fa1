// Pictures out of files that somebody else made: JPEG, PNG and WebP, by a plug-in.
#pragma once
#include <cstddef>
#include <filesystem>
#include <vector>

#include "contract/result.h"
#include "trainer/data/picture/codecs/abi.h"
#include "trainer/values/picture.h"

namespace tj::trainer {

inline constexpr std::int64_t kPictureFileBytesMax = std::int64_t{256} << 20;

/// libtrainer_picture.so beside this program.
std::filesystem::path default_picture_plugin();

class PictureReader {
 public:
  /// The plug-in stays loaded for the rest of the process. Fails with Code::not_found and says what
  /// is missing.
  static Result<PictureReader> open(const std::filesystem::path& plugin);
  explicit PictureReader(const PicturePlugin& plugin) : plugin_(&plugin) {}

  // On any thread. Both fail with the file: with Code::invalid for what is no picture, not_found
  // where it is not there, and another code where another attempt may read it.

  /// By the head of the file.
  Result<PictureSize> size(const std::filesystem::path& file) const;
  Result<Picture> read(const std::filesystem::path& file) const;

 private:
  const PicturePlugin* plugin_;
};

}  // namespace tj::trainer
