// A video to latents and back, frame by frame, in memory that does not grow with it. Includes
// torch.
//
// The decoder's first frames_to_trim() frames are of before the video, and training reconstructs
// frame i + frames_to_trim() of a clip by frame i that is not trimmed. So that frame i of what is
// decoded is frame i of the video, its first frame is encoded once more for each of those. A video
// whose number of frames is no multiple is filled up by its last one, its right and lower edge by
// their pixels; what was filled up is cut off again.
//
// Shapes: frames for people are bytes [frames, H, W, 3]; latents are [1, C, H / 8, W / 8].
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "contract/result.h"
#include "trainer/data/video/video.h"
#include "trainer/workloads/taehv/taehv.h"

namespace tj::trainer {

/// Pixels of one frame at most: what a file says is not believed without a bound.
inline constexpr std::int64_t kFramePixelsMax = std::int64_t{1} << 26;

/// Extents of the latents of a video: number, channels, height and width.
std::vector<std::int64_t> latents_shape(const TaehvConfig& config, const VideoShape& video);
/// The longest video of so many latents, and the largest of such ones.
VideoShape video_of_latents(const TaehvConfig& config, const std::vector<std::int64_t>& latents);

/// Frames of a video in their order, a few at a time.
class FrameReader {
 public:
  /// The video outlives it.
  FrameReader(const Video& video, at::Device device);
  /// The next ones, on the device; none are left: undefined. Fails as Video::read().
  Result<at::Tensor> next();

 private:
  const Video& video_;
  const VideoShape shape_;
  const at::Device device_;
  std::int64_t read_ = 0;  // frames so far
};

class VideoEncoder {
 public:
  /// The model outlives it.
  VideoEncoder(const Taehv& model, const TaehvConfig& config);
  /// Takes frames, and gives float32 latents that are made by now.
  std::vector<at::Tensor> push(const at::Tensor& frames);
  /// After the last one: what is left.
  std::vector<at::Tensor> finish();

 private:
  at::Tensor input_of(const at::Tensor& frame) const;

  TaehvStream stream_;
  const std::int64_t multiple_;  // of height and width
  std::int64_t before_;          // the first frame is still to be repeated so often
};

class VideoDecoder {
 public:
  /// The model outlives it.
  VideoDecoder(const Taehv& model, const VideoShape& video);
  /// Takes a latent, and gives the frames that are made by now, of the video's size, and never more
  /// than it has; none: undefined.
  at::Tensor push(const at::Tensor& latent);

 private:
  TaehvStream stream_;
  const VideoShape video_;
  std::int64_t left_;  // frames
};

/// How close frames are to others, over all of them: of bytes, as a viewer gets them.
class FrameComparison {
 public:
  /// Frames of the same number and size.
  void add(const at::Tensor& frames, const at::Tensor& others);

  std::int64_t frames() const { return frames_; }
  /// dB, of values from 0 to 255; infinite where all are equal.
  double psnr() const;
  /// None for frames that are smaller than its window.
  std::optional<double> ssim() const;

 private:
  std::int64_t frames_ = 0;
  std::int64_t values_ = 0;
  at::Tensor squared_errors_;  // double, on the device: read at the end
  at::Tensor similarities_;    // of frames, added up
};

}  // namespace tj::trainer
