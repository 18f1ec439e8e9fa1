// PNG, by libpng. Its errors come back by longjmp: no object with a destructor lives where one may
// pass.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "trainer/data/picture/codecs/codecs.h"

namespace tj::trainer {
namespace {

constexpr png_uint_32 kSideMax = 1'000'000;           // pixels
constexpr png_alloc_size_t kChunkBytesMax = 8 << 20;  // of texts and profiles, which nobody reads
constexpr png_uint_32 kChunksMax = 1000;
constexpr std::int64_t kChannels = 3;
constexpr int kEightBits = 8;
constexpr int kSixteenBits = 16;

/// What is left of the file, and where libpng's words go.
struct PngSource {
  const unsigned char* at;
  std::int64_t left;
  PluginText* why;
  std::jmp_buf back;
};

void on_error(png_structp png, png_const_charp words) {
  auto& source = *static_cast<PngSource*>(png_get_error_ptr(png));
  source.why->write(words);
  std::longjmp(source.back, 1);
}
void on_warning(png_structp /*png*/, png_const_charp /*words*/) {}

void on_read(png_structp png, png_bytep place, png_size_t count) {
  auto& source = *static_cast<PngSource*>(png_get_io_ptr(png));
  if (static_cast<std::int64_t>(count) > source.left) png_error(png, "is cut short");
  std::memcpy(place, source.at, count);
  source.at += count;
  source.left -= static_cast<std::int64_t>(count);
}

struct Png {
  png_structp read = nullptr;
  png_infop info = nullptr;
};

/// No longjmp passes here: what is made is the caller's to destroy.
bool make(Png& png, PngSource& source) {
  png.read = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, on_error, on_warning);
  if (png.read != nullptr) png.info = png_create_info_struct(png.read);
  if (png.info != nullptr) return true;
  source.why->write("no memory for a PNG");
  png_destroy_read_struct(&png.read, &png.info, nullptr);
  return false;
}

void read_head(const Png& png, PngSource& source) {
  png_set_user_limits(png.read, kSideMax, kSideMax);
  png_set_chunk_malloc_max(png.read, kChunkBytesMax);
  png_set_chunk_cache_max(png.read, kChunksMax);
  png_set_read_fn(png.read, &source, on_read);
  png_read_info(png.read, png.info);
}

/// Colours as they are stored: neither gamma nor a background changes them.
void read_rows(const Png& png, const PictureInfo& info, unsigned char* rgb) {
  const auto kind = png_get_color_type(png.read, png.info);
  const auto bits = png_get_bit_depth(png.read, png.info);
  if (png_get_image_height(png.read, png.info) != info.height ||
      png_get_image_width(png.read, png.info) != info.width)
    png_error(png.read, "has changed meanwhile");
  if (bits == kSixteenBits) png_set_strip_16(png.read);
  if (kind == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png.read);
  if (kind == PNG_COLOR_TYPE_GRAY && bits < kEightBits) png_set_expand_gray_1_2_4_to_8(png.read);
  if ((kind & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png.read);
  png_set_strip_alpha(png.read);
  const int passes = png_set_interlace_handling(png.read);
  png_read_update_info(png.read, png.info);
  const auto row_bytes = info.width * kChannels;
  if (static_cast<std::int64_t>(png_get_rowbytes(png.read, png.info)) != row_bytes)
    png_error(png.read, "has rows of another size than its colours");
  for (int pass = 0; pass < passes; ++pass)
    for (std::int64_t row = 0; row < info.height; ++row)
      png_read_row(png.read, rgb + row * row_bytes, nullptr);
  png_read_end(png.read, nullptr);
}

}  // namespace

bool look_at_png(const PictureBytes& file, PictureInfo& info, PluginText& why) {
  PngSource source{.at = file.bytes, .left = file.count, .why = &why, .back = {}};
  Png png;
  if (!make(png, source)) return false;
  if (setjmp(source.back) != 0) {
    png_destroy_read_struct(&png.read, &png.info, nullptr);
    return false;
  }
  read_head(png, source);
  info.height = png_get_image_height(png.read, png.info);
  info.width = png_get_image_width(png.read, png.info);
  png_destroy_read_struct(&png.read, &png.info, nullptr);
  return true;
}

bool decode_png(const PictureBytes& file, const PictureInfo& info, unsigned char* rgb,
                PluginText& why) {
  PngSource source{.at = file.bytes, .left = file.count, .why = &why, .back = {}};
  Png png;
  if (!make(png, source)) return false;
  if (setjmp(source.back) != 0) {
    png_destroy_read_struct(&png.read, &png.info, nullptr);
    return false;
  }
  read_head(png, source);
  read_rows(png, info, rgb);
  png_destroy_read_struct(&png.read, &png.info, nullptr);
  return true;
}

}  // namespace tj::trainer
