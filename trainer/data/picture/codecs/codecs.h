// The three formats of pictures, each by its own library, from bytes that nobody vouches for. What
// all have in common: rows of red, green and blue, as Pillow's convert("RGB") makes them (palettes
// and greys become colours, an alpha channel is dropped, 16 bits become 8), and not turned by what
// EXIF says of the camera, which Hugging Face's processors don't do either.
#pragma once
#include "trainer/data/picture/codecs/abi.h"

namespace tj::trainer {

bool look_at_jpeg(const PictureBytes& file, PictureInfo& info, PluginText& why);
bool decode_jpeg(const PictureBytes& file, const PictureInfo& info, unsigned char* rgb,
                 PluginText& why);
bool look_at_png(const PictureBytes& file, PictureInfo& info, PluginText& why);
bool decode_png(const PictureBytes& file, const PictureInfo& info, unsigned char* rgb,
                PluginText& why);
bool look_at_webp(const PictureBytes& file, PictureInfo& info, PluginText& why);
bool decode_webp(const PictureBytes& file, const PictureInfo& info, unsigned char* rgb,
                 PluginText& why);

/// False with the cause in `why` where a picture is too large, or has no pixels.
bool has_fitting_size(const PictureInfo& info, PluginText& why);

}  // namespace tj::trainer
