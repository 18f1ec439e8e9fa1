#include "trainer/report/picture.h"

#include <png.h>

namespace tj::trainer {

Result<std::string> png_of(const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.size.width);
  image.height = static_cast<png_uint_32>(picture.size.height);
  image.format = PNG_FORMAT_RGB;
  const auto write = [&](void* memory, png_alloc_size_t* bytes) {
    return png_image_write_to_memory(&image, memory, bytes, /*convert_to_8_bit=*/0,
                                     picture.rgb.data(), /*row_stride=*/0, nullptr) != 0;
  };
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t bytes = file.size();
  if (!write(file.data(), &bytes))
    return Error{.code = Code::internal, .message = image.message, .subject = "PNG"};
  file.resize(bytes);
  return file;
}

}  // namespace tj::trainer
