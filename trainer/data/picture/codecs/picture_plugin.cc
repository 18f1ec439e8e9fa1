// libtrainer_picture.so: pictures of the three formats, known by how their files begin.
#include <cstdio>
#include <cstring>
#include <string_view>

#include "trainer/data/picture/codecs/codecs.h"

namespace tj::trainer {

bool has_fitting_size(const PictureInfo& info, PluginText& why) {
  const bool fits = info.height >= 1 && info.width >= 1 && info.height <= kPicturePixelsMax &&
                    info.width <= kPicturePixelsMax / info.height;
  if (fits) return true;
  char words[160];
  std::snprintf(words, sizeof words,
                "is %lld x %lld pixels; a picture has one at least and at most %lld in all",
                static_cast<long long>(info.width), static_cast<long long>(info.height),
                static_cast<long long>(kPicturePixelsMax));
  why.write(words);
  return false;
}

namespace {

struct Format {
  const char* name;
  bool (*is)(std::string_view file);
  bool (*look)(const PictureBytes& file, PictureInfo& info, PluginText& why);
  bool (*decode)(const PictureBytes& file, const PictureInfo& info, unsigned char* rgb,
                 PluginText& why);
};

constexpr Format kFormats[] = {
    {"JPEG", [](std::string_view file) { return file.starts_with("\xff\xd8\xff"); }, look_at_jpeg,
     decode_jpeg},
    {"PNG", [](std::string_view file) { return file.starts_with("\x89PNG\r\n\x1a\n"); },
     look_at_png, decode_png},
    {"WebP",
     [](std::string_view file) {
       return file.starts_with("RIFF") && file.substr(0, 12).ends_with("WEBP");
     },
     look_at_webp, decode_webp},
};

const Format* format_of(const PictureBytes& file) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes),
                               static_cast<std::size_t>(file.count));
  for (const auto& format : kFormats)
    if (format.is(bytes)) return &format;
  return nullptr;
}

bool look(const PictureBytes* file, PictureInfo* info, PluginText* why) {
  const auto* const format = format_of(*file);
  if (format == nullptr) return why->write("is neither a JPEG nor a PNG nor a WebP"), false;
  *info = {};
  std::strncpy(info->format, format->name, sizeof info->format - 1);
  return format->look(*file, *info, *why) && has_fitting_size(*info, *why);
}

bool decode(const PictureBytes* file, const PictureInfo* info, unsigned char* rgb,
            PluginText* why) {
  const auto* const format = format_of(*file);
  if (format == nullptr) return why->write("has changed meanwhile"), false;
  return format->decode(*file, *info, rgb, *why);
}

constexpr PicturePlugin kPlugin{.abi = kPictureAbi, .look = look, .decode = decode};

}  // namespace
}  // namespace tj::trainer

const tj::trainer::PicturePlugin* trainer_picture_plugin() { return &tj::trainer::kPlugin; }
