// What a teacher has made of each video, on disk: a .safetensors file with one tensor `latents`,
// [T, C, h, w], of which the piece that belongs to a clip is read. Torch-free.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "contract/result.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/data/video/video.h"

namespace tj::trainer {

/// What one latent stands for.
struct LatentGrid {
  std::int64_t channels = 0;
  std::int64_t frames = 1;  // of the video
  std::int64_t pixels = 1;  // of it, height and width
};

/// A piece of a video's latents, all channels of it; counted in latents.
struct LatentPiece {
  std::int64_t first = 0;  // in time
  std::int64_t count = 0;
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t side = 0;
};

class TeacherLatents {
 public:
  /// Looks at the header alone. Where frames or pixels of the video are no multiple of a latent's
  /// the file may have the last, incomplete one or not. Fails with Code::invalid or not_found; the
  /// error names the file and what it should be.
  static Result<TeacherLatents> open(const std::filesystem::path& file, const VideoShape& video,
                                     const LatentGrid& grid);

  /// [count, channels, side, side], as float32. The piece lies in the video. On any thread.
  Result<void> read(const LatentPiece& piece, std::span<float> place) const;

 private:
  TeacherLatents(SafetensorsFile file, FileTensor latents)
      : file_(std::move(file)), latents_(std::move(latents)) {}
  SafetensorsFile file_;
  FileTensor latents_;
};

/// The file of a video: `folder`/NAME.safetensors, NAME being the video's name below the one of
/// `paths` that holds it, or its own where it was named itself.
std::filesystem::path teacher_file(const std::filesystem::path& folder, const std::string& video,
                                   std::span<const std::string> paths);

}  // namespace tj::trainer
