// WebP, by libwebp.
#include <webp/decode.h>

#include "trainer/data/picture/codecs/codecs.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kChannels = 3;

const char* words_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA: return "is cut short";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "has a feature that libwebp does not know";
    case VP8_STATUS_OUT_OF_MEMORY: return "no memory for it";
    default: return "is damaged";
  }
}

/// The same of one that is said to be damaged.
const char* damage_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA: return "it ends early";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "it has a feature that libwebp does not know";
    case VP8_STATUS_OUT_OF_MEMORY: return "no memory for it";
    default: return "libwebp can't decode it";
  }
}

}  // namespace

bool look_at_webp(const PictureBytes& file, PictureInfo& info, PluginText& why) {
  WebPBitstreamFeatures found;
  const auto status = WebPGetFeatures(file.bytes, static_cast<std::size_t>(file.count), &found);
  if (status != VP8_STATUS_OK) return why.write(words_of(status)), false;
  if (found.has_animation != 0) return why.write("is an animation, not a picture"), false;
  info.height = found.height;
  info.width = found.width;
  return true;
}

bool decode_webp(const PictureBytes& file, const PictureInfo& info, unsigned char* rgb,
                 PluginText& why) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return why.write("libwebp is of another version than its header"), false;
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {.rgba = rgb,
                          .stride = static_cast<int>(info.width * kChannels),
                          .size = static_cast<std::size_t>(info.height * info.width * kChannels)};
  const auto status = WebPDecode(file.bytes, static_cast<std::size_t>(file.count), &config);
  if (status != VP8_STATUS_OK) why.write(damage_of(status));
  return status == VP8_STATUS_OK;
}

}  // namespace tj::trainer
