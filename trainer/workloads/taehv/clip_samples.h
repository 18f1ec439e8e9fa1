// Videos as samples: clips of successive frames, cut out anew in each epoch.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/data/video/video.h"
#include "trainer/workload/sample_source.h"
#include "trainer/workloads/taehv/teacher_latents.h"

namespace tj::trainer {

struct ClipShape {
  std::int64_t frames = 0;      // of a clip
  std::int64_t side = 0;        // pixels, of its square
  std::int64_t stride_max = 1;  // frames of the video for one of the clip, at most
  // Where a clip that is drawn may lie.
  std::int64_t frame_step = 1;  // its first frame is a multiple of it
  std::int64_t pixel_step = 1;  // and so are top and left
  bool may_be_mirrored = true;
};

/// Videos that can't be used, and how many of all may be such.
struct BadVideos {
  std::size_t count = 0;
  std::size_t of = 0;
  double share_max = 0;

  bool are_too_many() const {
    return static_cast<double>(count) > share_max * static_cast<double>(of);
  }
  /// "1 of 7 videos"
  std::string count_text() const;
  /// "1 of 7 videos can't be used, --bad-data-max allows 1% (mend or remove them, or allow more)"
  std::string text() const;
};

/// Where one clip lies.
struct Clip {
  std::size_t video = 0;
  std::vector<std::int64_t> frames;  // ascending
  std::int64_t top = 0;              // pixels
  std::int64_t left = 0;
  bool is_mirrored = false;
};

/// Which clip a sample is: pure. As many samples of a video as clips tile its frames.
class ClipPlan {
 public:
  /// Each video has at least a clip's frames, height and width. Drawn: place, stride and mirror
  /// image are random, by the sample; else the tiles, from the middle of the picture.
  ClipPlan(const std::vector<VideoShape>& videos, const ClipShape& shape, bool is_drawn);

  std::int64_t count() const { return ends_.back(); }
  /// `retry`: another clip in its place, of any video.
  Clip clip(const Sample& sample, std::uint64_t retry = 0) const;

 private:
  std::vector<VideoShape> videos_;
  ClipShape shape_;
  bool is_drawn_;
  std::vector<std::int64_t> ends_;  // samples of each video and those before it
};

class ClipSamples final : public SampleSource {
 public:
  struct Options {
    ClipShape shape;
    bool is_drawn = true;
    std::int64_t weight = 0;  // of one clip
    BadVideos bad = {};       // of all: those that could not be opened
    /// Of each video, in their order; empty: there is no teacher. Clips are drawn by steps of its
    /// grid, and with a stride of 1.
    std::vector<TeacherLatents> latents = {};
    LatentGrid grid = {};
  };
  ClipSamples(std::vector<std::unique_ptr<Video>> videos, Options options);

  std::int64_t sample_count() const override { return plan_.count(); }
  /// uint8 [samples, frames, 3, side, side], and where there is a teacher its latents of the clips,
  /// float32. For a clip that can't be read another one is taken, the same on all ranks, and its
  /// video is named once; with more such videos than may be, it fails.
  Result<SampleBatch> read(std::span<const Sample> samples) const override;
  DataMark mark() const override;
  std::string description() const override;

 private:
  /// Of one sample in a batch.
  struct Place {
    std::span<std::byte> frames;
    std::span<float> latents;
  };
  SampleBatch room_for(std::int64_t samples) const;
  static Place place_of(SampleBatch& batch, std::size_t row);
  Result<void> read_sample(const Sample& sample, const Place& place) const;
  Result<void> read_clip(const Clip& clip, const Place& place) const;
  Result<void> read_latents(const Clip& clip, std::span<float> place) const;
  std::int64_t frame_count() const;
  Result<void> note_damage(const Clip& clip, const Error& error) const;

  std::vector<std::unique_ptr<Video>> videos_;
  Options options_;
  ClipPlan plan_;
  mutable std::mutex mutex_;  // guards the one below
  mutable std::set<std::size_t> damaged_;
};

}  // namespace tj::trainer
