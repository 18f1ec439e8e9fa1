#include "trainer/workloads/taehv/teacher_latents.h"

#include <algorithm>

#include "trainer/checkpoint/catalog.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr const char* kName = "latents";

Error wrong(const fs::path& file, std::string message, Code code = Code::invalid) {
  return {.code = code, .message = std::move(message), .subject = file.string()};
}

/// Of `of` frames or pixels: with the last, incomplete latent.
std::int64_t latents_of(std::int64_t of, std::int64_t for_one) {
  return (of + for_one - 1) / for_one;
}

/// With the incomplete latent or without.
bool fits(std::int64_t latents, std::int64_t of, std::int64_t for_one) {
  return latents == latents_of(of, for_one) || latents == of / for_one;
}

bool fits(const std::vector<std::int64_t>& shape, const VideoShape& video, const LatentGrid& grid) {
  return shape.size() == 4 && shape[1] == grid.channels &&
         fits(shape[0], video.frames, grid.frames) && fits(shape[2], video.height, grid.pixels) &&
         fits(shape[3], video.width, grid.pixels);
}

std::string wanted_text(const VideoShape& video, const LatentGrid& grid) {
  return shape_text(std::vector<std::int64_t>{latents_of(video.frames, grid.frames), grid.channels,
                                              latents_of(video.height, grid.pixels),
                                              latents_of(video.width, grid.pixels)});
}

/// What is said of the tensor, once it is this one.
Result<void> check(const fs::path& file, const FileTensor& tensor, const VideoShape& video,
                   const LatentGrid& grid) {
  if (const auto type = unreadable_type(tensor.dtype))
    return wrong(file, "tensor latents is of type " + *type);
  if (fits(tensor.shape, video, grid)) return {};
  return wrong(file, "tensor latents is " + shape_text(tensor.shape) + "; of its video it is " +
                         wanted_text(video, grid) + " (latents in time, channels, height, width)");
}

}  // namespace

Result<TeacherLatents> TeacherLatents::open(const fs::path& file, const VideoShape& video,
                                            const LatentGrid& grid) {
  std::error_code unreadable;
  if (!fs::exists(file, unreadable))
    return wrong(file, "is not there; it would be the teacher's latents", Code::not_found);
  auto opened = SafetensorsFile::open(file);
  if (!opened) return wrong(file, opened.error().message);
  const auto* const tensor = opened->find(kName);
  if (tensor == nullptr) return wrong(file, "has no tensor latents");
  if (const auto checked = check(file, *tensor, video, grid); !checked) return checked.error();
  auto latents = *tensor;
  return TeacherLatents(std::move(*opened), std::move(latents));
}

/// Whole rows are read, of each latent and channel at once: a piece of a row is mostly not worth a
/// read of its own.
Result<void> TeacherLatents::read(const LatentPiece& piece, std::span<float> place) const {
  const auto& shape = latents_.shape;
  const auto channels = shape[1], height = shape[2], width = shape[3];
  TJ_CHECK(
      static_cast<std::int64_t>(place.size()) == piece.count * channels * piece.side * piece.side,
      "room for the piece");
  TJ_CHECK(piece.first + piece.count <= shape[0] && piece.top + piece.side <= height &&
               piece.left + piece.side <= width,
           "the piece lies in the video");
  std::vector<float> rows(static_cast<std::size_t>(piece.side * width));
  float* next = place.data();
  for (std::int64_t plane = piece.first * channels; plane < (piece.first + piece.count) * channels;
       ++plane) {
    const auto element = (plane * height + piece.top) * width;
    if (const auto read = file_.read_floats(latents_, rows, element); !read) return read;
    for (std::int64_t row = 0; row < piece.side; ++row)
      next = std::copy_n(rows.data() + row * width + piece.left, piece.side, next);
  }
  return {};
}

fs::path teacher_file(const fs::path& folder, const std::string& video,
                      std::span<const std::string> paths) {
  const auto name = fs::path(video).lexically_normal();
  fs::path below = name.filename();
  for (const auto& path : paths) {
    // A slash at its end would make another name of it.
    const auto held = (fs::path(path) / "").lexically_normal().parent_path();
    const auto relative = name.lexically_relative(held);
    if (relative.empty() || relative == "." || *relative.begin() == "..") continue;
    below = relative;
    break;
  }
  below += ".safetensors";
  return folder / below;
}

}  // namespace tj::trainer
