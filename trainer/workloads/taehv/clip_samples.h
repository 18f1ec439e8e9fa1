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

namespace tj::trainer {

struct ClipShape {
  std::int64_t frames = 0;      // of a clip
  std::int64_t side = 0;        // pixels, of its square
  std::int64_t stride_max = 1;  // frames of the video for one of the clip, at most
};

/// "1%"
std::string percent_text(double share);

/// Where one clip lies.
struct Clip {
  std::size_t video = 0;
  std::vector<std::int64_t> frames;  // ascending
  std::int64_t top = 0;              // pixels
  std::int64_t left = 0;
  bool is_mirrored = false;
};

/// One that is open, and what messages call it.
struct NamedVideo {
  std::string name;
  std::unique_ptr<Video> video;
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
    std::int64_t weight = 0;   // of one clip
    double bad_share_max = 0;  // of all videos, that may be damaged
    std::size_t left_out = 0;  // which could not be used at all
  };
  ClipSamples(std::vector<NamedVideo> videos, const Options& options);

  std::int64_t sample_count() const override { return plan_.count(); }
  /// One tensor, uint8 [samples, frames, 3, side, side]. For a clip that can't be decoded another
  /// one is taken, the same on all ranks, and its video is named once; with more such videos than
  /// may be, it fails.
  Result<SampleBatch> read(std::span<const Sample> samples) const override;
  DataMark mark() const override;
  std::string description() const override;

 private:
  Result<void> read_clip(const Clip& clip, std::span<std::byte> place) const;
  Result<void> note_damage(const Clip& clip, const Error& error) const;

  std::vector<NamedVideo> videos_;
  Options options_;
  ClipPlan plan_;
  mutable std::mutex mutex_;  // guards the one below
  mutable std::set<std::size_t> damaged_;
};

}  // namespace tj::trainer
