// Decoded frames to RGB, as ffmpeg converts them, to the bit.
#pragma once
#include <vector>

#include "trainer/data/video/libav/abi.h"
#include "trainer/data/video/libav/owned.h"

namespace tj::trainer {

/// The part of a frame to convert, so that `part` of it comes out as from the whole frame: where
/// each pixel depends on its own samples alone a rectangle around it, else the frame.
VideoRectangle part_to_convert(const AVFrame& frame, const VideoRectangle& part);

/// For one thread at a time.
class RgbConverter {
 public:
  /// Writes the rows of `part`, which lies in the frame, one after another. Throws VideoError.
  void write(const AVFrame& frame, const VideoRectangle& part, unsigned char* rgb);

 private:
  /// What a scaler of FFmpeg's is made for.
  struct Kind {
    int width = 0;
    int height = 0;
    int format = 0;
    int matrix = 0;  // of the colours
    int range = 0;
    bool operator==(const Kind&) const = default;
  };
  struct Scaler {
    Kind kind;
    Owned<SwsContext> context;
    Owned<AVFrame> rgb;  // with the room that FFmpeg's kernels write beyond a row
  };
  Scaler& scaler_for(const Kind& kind);

  std::vector<Scaler> scalers_;  // the last one was used last
};

}  // namespace tj::trainer
