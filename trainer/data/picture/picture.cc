#include "trainer/data/picture/picture.h"

#include <algorithm>
#include <string>

#include "trainer/process/data_file.h"
#include "trainer/process/plugin.h"
#include "trainer/process/program_folder.h"

namespace tj::trainer {
namespace {

/// The head of nearly all files; of one with a long preview in front the whole is read.
constexpr std::int64_t kHeadBytes = 64 << 10;

std::string without(const std::string& missing, bool is_itself) {
  const std::string libraries =
      "libjpeg, libpng and libwebp (Debian: libjpeg62-turbo, libpng16-16, libwebp7)";
  if (is_itself)
    return "is missing; it must lie beside trainer-engine, with " + libraries +
           ", to read pictures";
  return "can't be loaded: " + missing + ", which it needs, is missing; " + libraries +
         " must be installed, to read pictures";
}

Error wrong(const std::filesystem::path& file, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = file.string()};
}

Result<std::string> bytes_of(const DataFile& file, std::int64_t bytes_max) {
  if (file.bytes() == 0) return wrong(file.path(), "is empty");
  if (file.bytes() > kPictureFileBytesMax)
    return wrong(file.path(), "has " + std::to_string(file.bytes()) + " bytes; a picture has " +
                                  std::to_string(kPictureFileBytesMax) + " at most");
  return file.read(0, std::min(file.bytes(), bytes_max));
}

PictureBytes view_of(const std::string& bytes) {
  return {.bytes = reinterpret_cast<const unsigned char*>(bytes.data()),
          .count = static_cast<std::int64_t>(bytes.size())};
}

PictureSize size_of(const PictureInfo& info) {
  return {.height = info.height, .width = info.width};
}

}  // namespace

std::filesystem::path default_picture_plugin() {
  return program_folder() / "libtrainer_picture.so";
}

Result<PictureReader> PictureReader::open(const std::filesystem::path& plugin) {
  const auto opened = load_plugin<PicturePlugin>(
      {.path = plugin, .factory = kPictureFactory, .program = "trainer", .without = without},
      kPictureAbi);
  if (!opened) return opened.error();
  return PictureReader(**opened);
}

Result<PictureSize> PictureReader::size(const std::filesystem::path& path) const {
  const auto file = DataFile::open(path);
  if (!file) return file.error();
  PictureInfo info;
  PluginText why;
  for (const auto bytes_max : {kHeadBytes, kPictureFileBytesMax}) {
    const auto bytes = bytes_of(*file, bytes_max);
    if (!bytes) return bytes.error();
    const auto view = view_of(*bytes);
    if (plugin_->look(&view, &info, &why)) return size_of(info);
    if (view.count == file->bytes()) break;
  }
  return wrong(path, why.bytes);
}

Result<Picture> PictureReader::read(const std::filesystem::path& path) const {
  const auto file = DataFile::open(path);
  if (!file) return file.error();
  const auto bytes = bytes_of(*file, kPictureFileBytesMax);
  if (!bytes) return bytes.error();
  const auto view = view_of(*bytes);
  PictureInfo info;
  PluginText why;
  if (!plugin_->look(&view, &info, &why)) return wrong(path, why.bytes);
  Picture picture{.size = size_of(info), .rgb = {}};
  picture.rgb.resize(static_cast<std::size_t>(3 * info.height * info.width));
  if (plugin_->decode(&view, &info, reinterpret_cast<unsigned char*>(picture.rgb.data()), &why))
    return picture;
  return wrong(path, "a " + std::string(info.format) + " of " + std::to_string(info.width) + " x " +
                         std::to_string(info.height) + " pixels is damaged: " + why.bytes);
}

}  // namespace tj::trainer
