#include "trainer/workloads/taehv/clip_samples.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "trainer/process/lines.h"
#include "trainer/values/counter_random.h"
#include "trainer/values/flat_layout.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

constexpr std::uint64_t kTriesMax = 16;  // clips in place of one that can't be decoded

std::vector<VideoShape> shapes_of(const std::vector<std::unique_ptr<Video>>& videos) {
  std::vector<VideoShape> shapes;
  for (const auto& video : videos) shapes.push_back(video->shape());
  return shapes;
}

/// Numbers that belong to one sample, one after another.
class Dice {
 public:
  Dice(const Sample& sample, std::uint64_t retry)
      : state_(mixed(sample.epoch_key ^ mixed(static_cast<std::uint64_t>(sample.index) + 1)) +
               retry) {}
  /// Below `count`.
  std::int64_t next(std::int64_t count) {
    state_ = mixed(state_ + 1);
    return static_cast<std::int64_t>(state_ % static_cast<std::uint64_t>(count));
  }

 private:
  std::uint64_t state_;
};

/// Rows of RGB pixels of a square to planes of one channel each.
void write_planes(std::span<const std::byte> rgb, std::int64_t side, bool is_mirrored,
                  std::byte* place) {
  for (std::int64_t channel = 0; channel < kRgbChannels; ++channel) {
    for (std::int64_t row = 0; row < side; ++row) {
      const auto* const pixels = rgb.data() + row * side * kRgbChannels + channel;
      for (std::int64_t column = 0; column < side; ++column) {
        const auto from = is_mirrored ? side - 1 - column : column;
        *place++ = pixels[from * kRgbChannels];
      }
    }
  }
}

}  // namespace

std::string BadVideos::count_text() const {
  return std::to_string(count) + " of " + std::to_string(of) + " videos";
}

std::string BadVideos::text() const {
  char share[32];
  std::snprintf(share, sizeof share, "%g%%", 100 * share_max);
  return count_text() + " can't be used, --bad-data-max allows " + share +
         " (mend or remove them, or allow more)";
}

ClipPlan::ClipPlan(const std::vector<VideoShape>& videos, const ClipShape& shape, bool is_drawn)
    : videos_(videos), shape_(shape), is_drawn_(is_drawn) {
  TJ_CHECK(!videos.empty(), "there is a video");
  std::int64_t count = 0;
  for (const auto& video : videos_) ends_.push_back(count += video.frames / shape_.frames);
}

Clip ClipPlan::clip(const Sample& sample, std::uint64_t retry) const {
  Dice dice(sample, retry);
  const auto index = retry == 0 ? sample.index : dice.next(count());
  const auto found = std::ranges::upper_bound(ends_, index);
  const auto video = static_cast<std::size_t>(found - ends_.begin());
  const auto& shape = videos_[video];
  const auto tile = index - (video == 0 ? 0 : ends_[video - 1]);
  Clip clip{.video = video,
            .frames = {},
            .top = (shape.height - shape_.side) / 2,
            .left = (shape.width - shape_.side) / 2};
  std::int64_t first = tile * shape_.frames, stride = 1;
  if (is_drawn_) {
    const auto gaps = std::max<std::int64_t>(1, shape_.frames - 1);
    const auto fitting = (shape.frames - 1) / gaps;
    stride = 1 + dice.next(std::clamp<std::int64_t>(fitting, 1, shape_.stride_max));
    const auto place_in = [&](std::int64_t room, std::int64_t step) {
      return step * dice.next(room / step + 1);
    };
    first = place_in(shape.frames - (shape_.frames - 1) * stride - 1, shape_.frame_step);
    clip.top = place_in(shape.height - shape_.side, shape_.pixel_step);
    clip.left = place_in(shape.width - shape_.side, shape_.pixel_step);
    clip.is_mirrored = dice.next(2) == 1 && shape_.may_be_mirrored;
  }
  for (std::int64_t frame = 0; frame < shape_.frames; ++frame)
    clip.frames.push_back(first + frame * stride);
  return clip;
}

ClipSamples::ClipSamples(std::vector<std::unique_ptr<Video>> videos, Options options)
    : videos_(std::move(videos)),
      options_(std::move(options)),
      plan_(shapes_of(videos_), options_.shape, options_.is_drawn) {}

Result<void> ClipSamples::read_clip(const Clip& clip, const Place& place) const {
  const auto side = options_.shape.side;
  const VideoPart square{.top = clip.top, .left = clip.left, .height = side, .width = side};
  std::vector<std::byte> rgb(clip.frames.size() * square.bytes());
  if (auto read = videos_[clip.video]->read_part(clip.frames, square, rgb); !read) return read;
  for (std::size_t i = 0; i < clip.frames.size(); ++i)
    write_planes(std::span(rgb).subspan(i * square.bytes(), square.bytes()), side, clip.is_mirrored,
                 place.frames.data() + i * square.bytes());
  return options_.latents.empty() ? Result<void>() : read_latents(clip, place.latents);
}

/// Those of a clip that lies on the grid, frame after frame.
Result<void> ClipSamples::read_latents(const Clip& clip, std::span<float> place) const {
  const auto& grid = options_.grid;
  return options_.latents[clip.video].read({.first = clip.frames.front() / grid.frames,
                                            .count = options_.shape.frames / grid.frames,
                                            .top = clip.top / grid.pixels,
                                            .left = clip.left / grid.pixels,
                                            .side = options_.shape.side / grid.pixels},
                                           place);
}

Result<void> ClipSamples::note_damage(const Clip& clip, const Error& error) const {
  const std::scoped_lock lock(mutex_);
  if (!damaged_.insert(clip.video).second) return {};
  auto bad = options_.bad;
  bad.count += damaged_.size();
  if (bad.are_too_many())
    return Error{.code = Code::invalid,
                 .message = error.message + "; " + bad.text(),
                 .subject = error.subject};
  say_error("left out, other clips take its place (" + bad.count_text() + "): " + describe(error));
  return {};
}

SampleBatch ClipSamples::room_for(std::int64_t samples) const {
  const auto& shape = options_.shape;
  const auto& grid = options_.grid;
  SampleBatch batch{.tensors = {}, .weight = samples * options_.weight};
  batch.tensors.push_back({.type = HostTensor::Type::uint8,
                           .shape = {samples, shape.frames, kRgbChannels, shape.side, shape.side},
                           .bytes = {}});
  batch.tensors.back().bytes.resize(
      static_cast<std::size_t>(element_count(batch.tensors.back().shape)));
  if (options_.latents.empty()) return batch;
  const auto side = shape.side / grid.pixels;
  batch.tensors.push_back(
      {.type = HostTensor::Type::float32,
       .shape = {samples, shape.frames / grid.frames, grid.channels, side, side},
       .bytes = {}});
  batch.tensors.back().bytes.resize(
      sizeof(float) * static_cast<std::size_t>(element_count(batch.tensors.back().shape)));
  return batch;
}

ClipSamples::Place ClipSamples::place_of(SampleBatch& batch, std::size_t row) {
  const auto of_row = [row](HostTensor& tensor) {
    const auto bytes = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape.front());
    return std::span(tensor.bytes).subspan(row * bytes, bytes);
  };
  Place place{.frames = of_row(batch.tensors.front()), .latents = {}};
  if (batch.tensors.size() == 1) return place;
  const auto latents = of_row(batch.tensors.back());
  place.latents = {reinterpret_cast<float*>(latents.data()), latents.size() / sizeof(float)};
  return place;
}

Result<void> ClipSamples::read_sample(const Sample& sample, const Place& place) const {
  Result<void> done;
  for (std::uint64_t retry = 0; retry < kTriesMax; ++retry) {
    const auto clip = plan_.clip(sample, retry);
    done = read_clip(clip, place);
    if (done) break;
    if (auto noted = note_damage(clip, done.error()); !noted) return noted;
  }
  return done;
}

Result<SampleBatch> ClipSamples::read(std::span<const Sample> samples) const {
  auto batch = room_for(static_cast<std::int64_t>(samples.size()));
  for (std::size_t row = 0; row < samples.size(); ++row) {
    if (const auto done = read_sample(samples[row], place_of(batch, row)); !done)
      return done.error();
  }
  return batch;
}

DataMark ClipSamples::mark() const {
  std::uint64_t digest = 0;
  for (const auto& shape : shapes_of(videos_)) {
    for (const auto extent : {shape.frames, shape.height, shape.width})
      digest = mixed(digest ^ static_cast<std::uint64_t>(extent));
  }
  if (!options_.latents.empty()) digest = mixed(digest + 1);  // other clips
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return {.unit = "frames", .count = frame_count(), .digest = text};
}

std::int64_t ClipSamples::frame_count() const {
  std::int64_t frames = 0;
  for (const auto& video : videos_) frames += video->shape().frames;
  return frames;
}

std::string ClipSamples::description() const {
  return grouped(frame_count()) + " frames in " +
         grouped(static_cast<std::int64_t>(videos_.size())) +
         (videos_.size() == 1 ? " video" : " videos");
}

}  // namespace tj::trainer
