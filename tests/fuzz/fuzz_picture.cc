// JPEG, PNG and WebP of any bytes: what the plug-in says of them, and their pixels.
#include <vector>

#include "tests/fuzz/fuzzed.h"
#include "trainer/data/picture/codecs/abi.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tj::trainer;
  constexpr std::int64_t kPixelsMax = 1 << 22;  // a picture of a few bytes may be large, and slow
  const PicturePlugin& plugin = *trainer_picture_plugin();
  const PictureBytes file{.bytes = data, .count = static_cast<std::int64_t>(size)};
  PictureInfo info;
  PluginText why;
  if (!plugin.look(&file, &info, &why)) {
    TJ_CHECK(why.bytes[0] != '\0', "a refusal says why");
    return 0;
  }
  TJ_CHECK(info.height >= 1 && info.width >= 1, "a picture has pixels");
  if (info.height * info.width > kPixelsMax) return 0;
  std::vector<unsigned char> rgb(static_cast<std::size_t>(3 * info.height * info.width));
  const bool is_read = plugin.decode(&file, &info, rgb.data(), &why);
  TJ_CHECK(is_read || why.bytes[0] != '\0', "a refusal says why");
  return 0;
}
