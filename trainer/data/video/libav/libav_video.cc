#include "trainer/data/video/libav/libav_video.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

namespace tj::trainer {
namespace {

/// Decoders that wait to be used again, of all videos: each holds a file and some frames.
constexpr std::int64_t kIdleDecodersMax = 256;
/// Of one video: with so many, one of them is seldom far before a clip.
constexpr std::int64_t kIdleOfVideoMax = 8;
/// Frames of a decoder's own, about: those that others refer to, and those that wait to be shown.
constexpr std::int64_t kDecoderFrames = 8;

std::int64_t bytes_of(const AVFrame& frame) {
  std::int64_t bytes = sizeof frame;
  for (const auto* buffer : frame.buf)
    if (buffer != nullptr) bytes += static_cast<std::int64_t>(buffer->size);
  return bytes;
}

/// A few, for as many threads as read at once: a scaler is large, and made in a millisecond.
class Converters {
 public:
  std::unique_ptr<RgbConverter> take() {
    const std::scoped_lock lock(mutex_);
    if (idle_.empty()) return std::make_unique<RgbConverter>();
    auto converter = std::move(idle_.back());
    idle_.pop_back();
    return converter;
  }
  void give_back(std::unique_ptr<RgbConverter> converter) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(converter));
  }

 private:
  std::mutex mutex_;  // guards the one below
  std::vector<std::unique_ptr<RgbConverter>> idle_;
};

Converters& converters() {
  static auto* const all = new Converters;  // threads may outlive static objects
  return *all;
}

}  // namespace

bool ByteBudget::take(std::int64_t bytes) {
  if (bytes_.fetch_add(bytes) + bytes <= bytes_max_) return true;
  bytes_ -= bytes;
  return false;
}

LibavVideo::LibavVideo(std::string path, VideoLibrary& library)
    : path_(std::move(path)), library_(library) {
  auto decoder = std::make_unique<LibavDecoder>(path_, library_.device, nullptr);
  const auto rate = decoder->rate();
  info_ = {.height = decoder->height(),
           .width = decoder->width(),
           .rate_frames = rate.num,
           .rate_seconds = rate.num > 0 ? rate.den : 0};
  std::snprintf(info_.codec, sizeof info_.codec, "%s", decoder->codec().c_str());
  look_through(std::move(decoder));
  info_.times = view_of(times_);
  ++library_.video_count;
}

/// A picture is decoded by the decoder that has opened it: folders of them are read file by file.
void LibavVideo::look_through(std::unique_ptr<LibavDecoder> decoder) {
  facts_ = std::make_unique<StreamFacts>(decoder->facts());
  if (decoder->is_picture()) {
    times_.frames = 1;
    return give_back(std::move(decoder));
  }
  auto scan = decoder->scan();
  info_.seconds = scan.seconds;
  times_ = std::move(scan.times);
}

LibavVideo::LibavVideo(std::string path, const VideoInfo& known, VideoLibrary& library)
    : path_(std::move(path)), library_(library), info_(known), times_(copy_of(known.times)) {
  ++library_.video_count;
  info_.times = view_of(times_);
}

LibavVideo::~LibavVideo() {
  --library_.video_count;
  library_.idle_decoder_count -= static_cast<std::int64_t>(idle_.size());
  library_.idle_decoders.give_back(static_cast<std::int64_t>(idle_.size()) * decoder_bytes());
  for (const auto& [number, frame] : kept_) library_.frames.give_back(bytes_of(*frame));
}

/// What can't be decoded one way is tried the other way: a damaged frame that nobody asked for is
/// an error of the one that decodes it alone, and which comes first depends on how much is kept.
void LibavVideo::read(std::span<const std::int64_t> frames, const VideoRectangle& part,
                      unsigned char* rgb) {
  const Wanted wanted{.frames = frames, .part = part, .rgb = rgb};
  const bool has_room = library_.frames.has_room();
  try {
    read(wanted, has_room ? OnTheWay::kept : OnTheWay::skipped);
  } catch (const VideoError&) {
    read(wanted, has_room ? OnTheWay::skipped : OnTheWay::kept);
  }
}

/// What a decoder was in when it failed is not used again.
void LibavVideo::read(const Wanted& wanted, OnTheWay others) {
  auto converter = converters().take();
  std::unique_ptr<LibavDecoder> decoder;
  auto* place = wanted.rgb;
  for (const auto number : wanted.frames) {
    auto frame = kept(number);
    if (!frame) {
      if (!decoder) {
        decoder = decoder_for(number);
        decoder->begin(run_of(wanted, others));
      }
      decoder->approach(number, times_);
      converter->write(decoder->decode(number, times_), wanted.part, place);
    } else {
      converter->write(*frame, wanted.part, place);
    }
    place += 3 * wanted.part.height * wanted.part.width;
  }
  if (decoder) give_back(std::move(decoder));
  converters().give_back(std::move(converter));
}

FrameRun LibavVideo::run_of(const Wanted& wanted, OnTheWay others) {
  FrameRun run;
  if (others == OnTheWay::kept)
    run.passed = [this](const AVFrame& frame, std::int64_t number) { keep(number, frame); };
  if (!times_.are_known()) return run;
  run.skips_others = others == OnTheWay::skipped;
  for (const auto number : wanted.frames) run.times.push_back(times_.at(number));
  return run;
}

std::unique_ptr<LibavDecoder> LibavVideo::decoder_for(std::int64_t frame) {
  auto idle = take_idle(frame);
  return idle ? std::move(idle) : open_decoder();
}

/// The one that has the least to decode on its way there. One that must seek would lose its place,
/// which may be the right one for the next clip: then rather another one, where that is cheap.
std::unique_ptr<LibavDecoder> LibavVideo::take_idle(std::int64_t frame) {
  const std::scoped_lock lock(mutex_);
  if (idle_.empty()) return nullptr;
  constexpr auto kFar = std::numeric_limits<std::int64_t>::max();
  const auto way_of = [&](const std::unique_ptr<LibavDecoder>& decoder) {
    return decoder->distance_to(frame, times_).value_or(kFar);
  };
  const auto nearest = std::ranges::min_element(idle_, {}, way_of);
  const bool may_be_more = static_cast<std::int64_t>(idle_.size()) < idle_max() &&
                           facts_ != nullptr && facts_->are_in_header;
  if (may_be_more && way_of(*nearest) == kFar) return nullptr;
  auto decoder = std::move(*nearest);
  idle_.erase(nearest);
  --library_.idle_decoder_count;
  library_.idle_decoders.give_back(decoder_bytes());
  return decoder;
}

std::unique_ptr<LibavDecoder> LibavVideo::open_decoder() {
  const StreamFacts* facts = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    facts = facts_.get();
  }
  auto decoder = std::make_unique<LibavDecoder>(path_, library_.device, facts);
  const bool is_the_same = decoder->height() == info_.height && decoder->width() == info_.width &&
                           decoder->codec() == info_.codec;
  if (!is_the_same) throw VideoError("is another video than before");
  const std::scoped_lock lock(mutex_);
  if (!facts_) facts_ = std::make_unique<StreamFacts>(decoder->facts());
  return decoder;
}

void LibavVideo::give_back(std::unique_ptr<LibavDecoder> decoder) {
  decoder->end_run();
  if (!library_.idle_decoders.take(decoder_bytes())) return;
  if (++library_.idle_decoder_count > kIdleDecodersMax) {
    --library_.idle_decoder_count;
    library_.idle_decoders.give_back(decoder_bytes());
    return;
  }
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(decoder));
}

/// Of those that may wait, one for each video at least.
std::int64_t LibavVideo::idle_max() const {
  const auto videos = std::max<std::int64_t>(1, library_.video_count);
  const auto by_bytes = library_.idle_decoders.bytes_max() / (videos * decoder_bytes());
  return std::clamp(std::min(kIdleDecodersMax / videos, by_bytes), std::int64_t{1},
                    kIdleOfVideoMax);
}

/// With half as many samples of colour as of brightness, as nearly all videos have them.
std::int64_t LibavVideo::decoder_bytes() const {
  return kDecoderFrames * std::int64_t{info_.height} * info_.width * 3 / 2;
}

std::shared_ptr<const AVFrame> LibavVideo::kept(std::int64_t frame) {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(frame);
  return found == kept_.end() ? nullptr : found->second;
}

/// What is there stays: samples are drawn without an order, so that no frame is less needed than
/// another, and to drop one for the next would only cost another decoding of it.
void LibavVideo::keep(std::int64_t number, const AVFrame& frame) {
  const bool is_of_this_size = frame.width == info_.width && frame.height == info_.height;
  if (!is_of_this_size || kept(number) || !library_.frames.has_room()) return;
  const std::shared_ptr<AVFrame> reference(av_frame_clone(&frame), Freed());
  if (!reference) return;
  const auto bytes = bytes_of(*reference);
  if (!library_.frames.take(bytes)) return;
  const std::scoped_lock lock(mutex_);
  if (!kept_.emplace(number, reference).second) library_.frames.give_back(bytes);
}

}  // namespace tj::trainer
