#include "trainer/data/video/libav/decoder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "trainer/data/video/libav/matroska_size.h"

extern "C" {
#include <libavutil/hwcontext.h>
#include <libavutil/mathematics.h>
}

namespace tj::trainer {
namespace {

Owned<AVFormatContext> opened(const std::string& path) {
  AVFormatContext* format = nullptr;
  const int code = avformat_open_input(&format, path.c_str(), nullptr, nullptr);
  // An MP4 whose end is missing has no table of its frames, and looks like no video at all.
  checked(code, code == AVERROR_INVALIDDATA ? "is no video, or ends early" : "can't be opened");
  return Owned<AVFormatContext>(format);
}

/// Their headers say what a decoder must know, and each packet has its own time.
bool says_all_in_header(const AVInputFormat& format) {
  const std::string_view name = format.name;
  return name.starts_with("mov,") || name.starts_with("matroska,");
}

/// Frames that no other one refers to are marked in the stream (nal_ref_idc 0, B-VOPs), and the
/// decoder leaves them out unseen. Of two fields that make a frame one alone may be marked.
bool may_skip(const AVCodecParameters& parameters) {
  const bool is_marked =
      parameters.codec_id == AV_CODEC_ID_H264 || parameters.codec_id == AV_CODEC_ID_MPEG4;
  const bool is_of_fields =
      parameters.field_order != AV_FIELD_UNKNOWN && parameters.field_order != AV_FIELD_PROGRESSIVE;
  return is_marked && !is_of_fields;
}

bool is_sane(std::int64_t time) { return time > -kVideoTimeMax && time < kVideoTimeMax; }

}  // namespace

bool is_whole(const AVFrame& frame) {
  return frame.decode_error_flags == 0 && (frame.flags & AV_FRAME_FLAG_CORRUPT) == 0;
}

LibavDecoder::LibavDecoder(const std::string& path, const HardwareDevice& device,
                           const StreamFacts* known)
    : path_(path),
      device_(&device),
      known_(known),
      format_(opened(path)),
      frame_(av_frame_alloc()),
      packet_(av_packet_alloc()) {
  probe();
  for (unsigned i = 0; i < format_->nb_streams; ++i)
    if (static_cast<int>(i) != stream_) format_->streams[i]->discard = AVDISCARD_ALL;
  open_codec();
  if (codec_->width < 1 || codec_->height < 1) fail("says no width and height");
}

/// Which stream it is, and what is in it. Where that is known from before, and stands in the
/// header, no packets are read for it.
void LibavDecoder::probe() {
  if (known_ != nullptr && known_->are_in_header) {
    stream_ = known_->stream;
    decoder_ = known_->codec;
    const bool is_there = stream_ < static_cast<int>(format_->nb_streams);
    if (!is_there || format_->streams[stream_]->codecpar->codec_id != known_->parameters->codec_id)
      fail("is another video than before");
    return;
  }
  checked(avformat_find_stream_info(format_.get(), nullptr), "has no readable streams");
  stream_ = av_find_best_stream(format_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, &decoder_, 0);
  if (stream_ < 0) fail("has no video stream that can be decoded: " + words_of(stream_));
}

void LibavDecoder::open_codec() {
  const bool is_known = known_ != nullptr && known_->are_in_header;
  const auto& stream = *format_->streams[stream_];
  const auto& parameters = is_known ? *known_->parameters : *stream.codecpar;
  codec_.reset(avcodec_alloc_context3(decoder_));
  checked(avcodec_parameters_to_context(codec_.get(), &parameters), "has no usable parameters");
  codec_->pkt_timebase = stream.time_base;
  codec_->thread_count = 1;  // batches are read by threads already
  device_->decode_for(*codec_, *decoder_);
  checked(avcodec_open2(codec_.get(), decoder_, nullptr), "can't be decoded");
  can_skip_ = may_skip(parameters);
}

AVRational LibavDecoder::rate() const {
  const auto rate = format_->streams[stream_]->avg_frame_rate;
  return rate.num > 0 && rate.den > 0 ? rate : AVRational{0, 1};
}

StreamFacts LibavDecoder::facts() const {
  StreamFacts facts{.parameters = Owned<AVCodecParameters>(avcodec_parameters_alloc()),
                    .codec = decoder_,
                    .stream = stream_,
                    .are_in_header = says_all_in_header(*format_->iformat)};
  checked(avcodec_parameters_copy(facts.parameters.get(), format_->streams[stream_]->codecpar),
          "has no usable parameters");
  return facts;
}

bool LibavDecoder::is_picture() const {
  return std::string_view(format_->iformat->name).ends_with("_pipe");
}

VideoScan LibavDecoder::scan() {
  std::vector<std::int64_t> shown, keys;
  std::int64_t end = 0, packets = 0;
  while (true) {
    const int code = av_read_frame(format_.get(), packet_.get());
    if (code == AVERROR_EOF) break;
    checked(code, "ends early, or can't be read to its end");
    const auto& packet = *packet_;
    const bool is_ours = packet.stream_index == stream_;
    const bool is_shown = is_ours && (packet.flags & AV_PKT_FLAG_DISCARD) == 0;
    packets += is_ours ? 1 : 0;
    if (is_shown) {
      shown.push_back(packet.pts);
      if ((packet.flags & AV_PKT_FLAG_KEY) != 0) keys.push_back(packet.pts);
      if (is_sane(packet.pts) && is_sane(packet.duration))
        end = std::max(end, packet.pts + packet.duration);
    }
    av_packet_unref(packet_.get());
    if (shown.size() > static_cast<std::size_t>(kVideoFramesMax)) fail("has too many frames");
  }
  if (shown.empty()) fail("has no frames");
  check_end(packets);
  is_fresh_ = false;
  is_at_end_ = true;
  const auto base = format_->streams[stream_]->time_base;
  const auto frame_rate = rate();
  const FrameStep step{.units = std::int64_t{base.den} * frame_rate.den,
                       .frames = std::int64_t{base.num} * std::max(1, frame_rate.num)};
  VideoScan scan{.times = frame_times(std::move(shown), std::move(keys), step)};
  if (scan.times.are_known()) {
    const auto units = static_cast<double>(end) - static_cast<double>(scan.times.at(0));
    scan.seconds = std::max(0.0, units * av_q2d(base));
  } else if (frame_rate.num > 0) {
    scan.seconds = static_cast<double>(scan.times.frames) / av_q2d(frame_rate);
  }
  return scan;
}

/// What ends in the middle is read as far as it goes by some of libav's readers. In an MP4 there
/// may rightly be more frames than it shows.
void LibavDecoder::check_end(std::int64_t packets) const {
  const std::string_view format = format_->iformat->name;
  const std::int64_t frames = format_->streams[stream_]->nb_frames;
  if (format == "avi" && packets < frames)
    fail("ends early: it has " + std::to_string(packets) + " of " + std::to_string(frames) +
         " frames");
  if (!format.starts_with("matroska,")) return;
  const auto bytes = matroska_bytes(path_);
  const std::int64_t there = avio_size(format_->pb);
  if (bytes && there >= 0 && there < *bytes)
    fail("ends early: it has " + std::to_string(there) + " of " + std::to_string(*bytes) +
         " bytes");
}

void LibavDecoder::end_run() {
  if (skipped_to_) lost_to_ = std::max(lost_to_.value_or(*skipped_to_), *skipped_to_);
  skipped_to_.reset();
  run_ = {};
}

bool LibavDecoder::seek(std::int64_t time) {
  const int code = av_seek_frame(format_.get(), stream_, time, AVSEEK_FLAG_BACKWARD);
  avcodec_flush_buffers(codec_.get());
  has_frame_ = is_at_end_ = is_fresh_ = false;
  skipped_to_ = lost_to_ = std::nullopt;
  return code >= 0;
}

/// From the first frame on: opened anew, since not every format can go back.
void LibavDecoder::restart() {
  auto run = std::move(run_);
  *this = LibavDecoder(path_, *device_, known_);
  run_ = std::move(run);
}

bool LibavDecoder::is_at(std::int64_t frame, const FrameTimes& times) const {
  if (!has_frame_) return false;
  return times.are_known() ? frame_->pts == times.at(frame) : number_ == frame;
}

bool LibavDecoder::is_past(std::int64_t frame, const FrameTimes& times) const {
  if (!has_frame_) return false;
  return times.are_known() ? frame_->pts > times.at(frame) : number_ > frame;
}

std::optional<std::int64_t> LibavDecoder::distance_to(std::int64_t frame,
                                                      const FrameTimes& times) const {
  if (!times.are_known()) {
    const bool is_behind = has_frame_ ? number_ > frame : is_at_end_;
    return is_behind ? std::nullopt : std::optional(frame - number_);
  }
  const auto time = times.at(frame);
  const auto key = times.key_before(frame);
  const bool is_from_begin = is_fresh_ && key == times.key_before(0);
  if (is_from_begin) return frame - key;
  const bool is_ahead = has_frame_ && frame_->pts <= time && frame_->pts >= times.at(key);
  if (!is_ahead) return std::nullopt;
  const bool is_lost = lost_to_ && frame_->pts != time && time <= *lost_to_;
  if (is_lost) return std::nullopt;
  return frame - times.number_at(frame_->pts).value_or(key);
}

void LibavDecoder::approach(std::int64_t frame, const FrameTimes& times) {
  if (distance_to(frame, times)) return;
  if (!times.are_known()) return restart();
  const bool is_there =
      seek(times.at(times.key_before(frame))) && next_frame(times) && !is_past(frame, times);
  if (!is_there) restart();  // a format that seeks beside the mark, or not at all
}

/// False at the end of the file.
bool LibavDecoder::next_frame(const FrameTimes& times) {
  has_frame_ = false;
  while (true) {
    const int code = avcodec_receive_frame(codec_.get(), frame_.get());
    if (code >= 0) {
      ++number_;
      has_frame_ = true;
      tell_passed(times);
      return true;
    }
    if (code == AVERROR_EOF) return false;
    if (code != AVERROR(EAGAIN)) checked(code, "is damaged");
    if (is_at_end_) return false;
    is_fresh_ = false;
    const int read = av_read_frame(format_.get(), packet_.get());
    if (read == AVERROR_EOF) {
      is_at_end_ = true;
      checked(avcodec_send_packet(codec_.get(), nullptr), "is damaged");
      continue;
    }
    checked(read, "can't be read");
    send_packet();
  }
}

/// The codec looks at `skip_frame` when it is given a packet, and remembers it with that.
void LibavDecoder::send_packet() {
  if (packet_->stream_index != stream_) return av_packet_unref(packet_.get());
  const auto time = packet_->pts;
  const bool is_wanted = !run_.skips_others || !can_skip_ || time == AV_NOPTS_VALUE ||
                         std::ranges::binary_search(run_.times, time);
  codec_->skip_frame = is_wanted ? AVDISCARD_DEFAULT : AVDISCARD_NONREF;
  if (!is_wanted) skipped_to_ = std::max(skipped_to_.value_or(time), time);
  const int sent = avcodec_send_packet(codec_.get(), packet_.get());
  av_packet_unref(packet_.get());
  checked(sent, "is damaged");
}

const AVFrame& LibavDecoder::in_memory() {
  if (frame_->hw_frames_ctx == nullptr) return *frame_;
  copied_.reset(av_frame_alloc());
  constexpr const char* kWhat = "can't be taken from the device";
  checked(av_hwframe_transfer_data(copied_.get(), frame_.get(), 0), kWhat);
  checked(av_frame_copy_props(copied_.get(), frame_.get()), kWhat);
  return *copied_;
}

void LibavDecoder::tell_passed(const FrameTimes& times) {
  if (!run_.passed || !is_whole(*frame_)) return;
  const auto number = times.are_known() ? times.number_at(frame_->pts) : std::optional(number_);
  if (number) run_.passed(in_memory(), *number);
}

const AVFrame& LibavDecoder::decode(std::int64_t frame, const FrameTimes& times) {
  while (!is_at(frame, times)) {
    const bool comes = !is_past(frame, times) && next_frame(times);
    if (!comes)
      fail((is_at_end_ ? "ends early: it has no frame " : "has no frame ") + std::to_string(frame) +
           " where its packets said one");
  }
  if (!is_whole(*frame_)) fail("is damaged at frame " + std::to_string(frame));
  if (frame_->width != codec_->width || frame_->height != codec_->height)
    fail("changes its size to " + std::to_string(frame_->width) + " x " +
         std::to_string(frame_->height));
  return in_memory();
}

}  // namespace tj::trainer
