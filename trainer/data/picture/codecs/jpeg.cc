// JPEG, by libjpeg-turbo. Its errors come back by longjmp: no object with a destructor lives where
// one may pass.
#include <csetjmp>
#include <cstdio>
// jpeglib.h needs stdio.h before it.
#include <jerror.h>
#include <jpeglib.h>

#include "trainer/data/picture/codecs/codecs.h"

namespace tj::trainer {
namespace {

/// A progressive picture may claim any number of passes over all of it.
constexpr int kScansMax = 500;
constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kInks = 4;  // cyan, magenta, yellow, black

struct JpegErrors {
  jpeg_error_mgr manager;  // the first: libjpeg knows only it
  std::jmp_buf back;
  PluginText* why;
};

void give_up(j_common_ptr common, const char* words) {
  auto& errors = *reinterpret_cast<JpegErrors*>(common->err);
  errors.why->write(words);
  std::longjmp(errors.back, 1);
}

void on_error(j_common_ptr common) {
  char words[JMSG_LENGTH_MAX];
  common->err->format_message(common, words);
  give_up(common, words);
}

/// Of a picture that is cut short, or damaged inside, libjpeg would make up the rest.
void on_message(j_common_ptr common, int level) {
  const int code = common->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) on_error(common);
}

void on_progress(j_common_ptr common) {
  const auto* const picture = reinterpret_cast<j_decompress_ptr>(common);
  if (picture->input_scan_number > kScansMax) give_up(common, "has more than 500 scans");
}

struct Jpeg {
  jpeg_decompress_struct picture;
  JpegErrors errors;
  jpeg_progress_mgr progress;
};

void begin(Jpeg& jpeg, PluginText& why) {
  jpeg.picture.err = jpeg_std_error(&jpeg.errors.manager);
  jpeg.errors.manager.error_exit = on_error;
  jpeg.errors.manager.emit_message = on_message;
  jpeg.errors.manager.output_message = [](j_common_ptr) {};
  jpeg.errors.why = &why;
  jpeg.progress.progress_monitor = on_progress;
}

void read_head(Jpeg& jpeg, const PictureBytes& file) {
  jpeg_create_decompress(&jpeg.picture);
  jpeg.picture.progress = &jpeg.progress;
  jpeg_mem_src(&jpeg.picture, file.bytes, static_cast<unsigned long>(file.count));
  jpeg_read_header(&jpeg.picture, TRUE);
}

/// a x b / 255, rounded (Pillow: MULDIV255).
int times(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

/// A row of inks, which files hold inverted (Adobe's way, and Pillow's: cmyk2rgb()).
void write_rgb(const unsigned char* inks, std::int64_t width, unsigned char* rgb) {
  constexpr int kFull = 255;
  for (std::int64_t x = 0; x < width; ++x, inks += kInks) {
    const int light = inks[kInks - 1];
    for (int channel = 0; channel < kChannels; ++channel)
      *rgb++ = static_cast<unsigned char>(light - times(kFull - inks[channel], light));
  }
}

void read_rows(Jpeg& jpeg, const PictureInfo& info, unsigned char* rgb) {
  auto& picture = jpeg.picture;
  const bool is_inked =
      picture.jpeg_color_space == JCS_CMYK || picture.jpeg_color_space == JCS_YCCK;
  picture.out_color_space = is_inked ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&picture);
  if (picture.output_height != info.height || picture.output_width != info.width)
    give_up(reinterpret_cast<j_common_ptr>(&picture), "has changed meanwhile");
  JSAMPARRAY inks = picture.mem->alloc_sarray(reinterpret_cast<j_common_ptr>(&picture), JPOOL_IMAGE,
                                              picture.output_width * kInks, 1);
  while (picture.output_scanline < picture.output_height) {
    unsigned char* const place = rgb + picture.output_scanline * info.width * kChannels;
    JSAMPROW row = is_inked ? inks[0] : place;
    if (jpeg_read_scanlines(&picture, &row, 1) == 1 && is_inked)
      write_rgb(inks[0], info.width, place);
  }
  jpeg_finish_decompress(&picture);
}

}  // namespace

bool look_at_jpeg(const PictureBytes& file, PictureInfo& info, PluginText& why) {
  Jpeg jpeg{};
  begin(jpeg, why);
  if (setjmp(jpeg.errors.back) != 0) {
    jpeg_destroy_decompress(&jpeg.picture);
    return false;
  }
  read_head(jpeg, file);
  info.height = jpeg.picture.image_height;
  info.width = jpeg.picture.image_width;
  jpeg_destroy_decompress(&jpeg.picture);
  return true;
}

bool decode_jpeg(const PictureBytes& file, const PictureInfo& info, unsigned char* rgb,
                 PluginText& why) {
  Jpeg jpeg{};
  begin(jpeg, why);
  if (setjmp(jpeg.errors.back) != 0) {
    jpeg_destroy_decompress(&jpeg.picture);
    return false;
  }
  read_head(jpeg, file);
  read_rows(jpeg, info, rgb);
  jpeg_destroy_decompress(&jpeg.picture);
  return true;
}

}  // namespace tj::trainer
