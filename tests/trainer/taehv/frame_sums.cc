// What our reader makes of a video, for a comparison with FFmpeg's own:
//
//   frame_sums PLUGIN VIDEO                   each frame's Adler-32, as ffmpeg's framecrc has it
//   frame_sums PLUGIN VIDEO MODE COUNT CACHE  with so many bytes for decoded frames; clips takes
//                                             several of these, one after another
//
// MODE seeks reads COUNT frames at random, and says what they have left. clips reads parts of
// several frames, of a video that is known by a line of an index, and compares them with what they
// are parts of. outcomes prints the sum of each of such clips, or that it failed.
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/video/video_files.h"
#include "trainer/data/video/video_index.h"
#include "trainer/values/counter_random.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

using Bytes = std::vector<std::byte>;

[[noreturn]] void fail(const Error& error) {
  std::fprintf(stderr, "frame_sums: %s\n", describe(error).c_str());
  std::exit(1);
}
[[noreturn]] void fail(const std::string& what) {
  fail(Error{.code = Code::internal, .message = what, .subject = {}});
}

class Dice {
 public:
  /// Below `count`.
  std::int64_t next(std::int64_t count) {
    return static_cast<std::int64_t>(mixed(++state_) % static_cast<std::uint64_t>(count));
  }

 private:
  std::uint64_t state_ = 11;
};

Bytes whole_frame(const Video& video, std::int64_t frame) {
  Bytes rgb(video.shape().frame_bytes());
  const std::int64_t only[] = {frame};
  if (const auto read = video.read(only, rgb); !read) fail(read.error());
  return rgb;
}

unsigned long sum_of(const Bytes& rgb) {
  return ::adler32(0, reinterpret_cast<const Bytef*>(rgb.data()), static_cast<uInt>(rgb.size()));
}

long resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::atol(line.c_str() + 6);
  return 0;
}

long open_files() {
  const fs::directory_iterator all("/proc/self/fd");
  return std::distance(fs::begin(all), fs::end(all));
}

std::vector<Bytes> all_frames(const Video& video) {
  std::vector<Bytes> frames;
  for (std::int64_t frame = 0; frame < video.shape().frames; ++frame)
    frames.push_back(whole_frame(video, frame));
  return frames;
}

/// Memory is compared after a first tenth: by then all that is kept is there.
void seek(const Video& video, int count) {
  const auto in_turn = all_frames(video);
  long kilobytes = 0, files = 0;
  Dice dice;
  for (int i = 0; i < count; ++i) {
    const auto frame = dice.next(static_cast<std::int64_t>(in_turn.size()));
    if (whole_frame(video, frame) != in_turn[static_cast<std::size_t>(frame)])
      fail("another frame " + std::to_string(frame) + " than before");
    if (i != count / 10) continue;
    kilobytes = resident_kilobytes();
    files = open_files();
  }
  std::printf("%ld kB more, %ld files more\n", resident_kilobytes() - kilobytes,
              open_files() - files);
}

bool is_part(const std::byte* rgb, const VideoPart& part, const Bytes& frame, std::int64_t width) {
  const auto row_bytes = static_cast<std::size_t>(part.width * kRgbChannels);
  for (std::int64_t row = 0; row < part.height; ++row, rgb += row_bytes) {
    const auto* const there = frame.data() + ((part.top + row) * width + part.left) * kRgbChannels;
    if (std::memcmp(rgb, there, row_bytes) != 0) return false;
  }
  return true;
}

struct SomeClip {
  std::vector<std::int64_t> frames;
  VideoPart part;
};

SomeClip any_clip(Dice& dice, const VideoShape& shape) {
  SomeClip clip;
  clip.part = {.height = 1 + dice.next(shape.height), .width = 1 + dice.next(shape.width)};
  clip.part.top = dice.next(shape.height - clip.part.height + 1);
  clip.part.left = dice.next(shape.width - clip.part.width + 1);
  const auto stride = 1 + dice.next(5);
  for (auto frame = dice.next(shape.frames); frame < shape.frames && clip.frames.size() < 6;
       frame += stride)
    clip.frames.push_back(frame);
  return clip;
}

void compare_clips(const Video& video, const std::vector<Bytes>& in_turn, int count) {
  Dice dice;
  for (int i = 0; i < count; ++i) {
    const auto [frames, part] = any_clip(dice, video.shape());
    Bytes rgb(frames.size() * part.bytes());
    if (const auto read = video.read_part(frames, part, rgb); !read) fail(read.error());
    for (std::size_t each = 0; each < frames.size(); ++each)
      if (!is_part(rgb.data() + each * part.bytes(), part,
                   in_turn[static_cast<std::size_t>(frames[each])], video.shape().width))
        fail("frame " + std::to_string(frames[each]) + " in clip " + std::to_string(i) +
             " is another one");
  }
}

void print_outcomes(const Video& video, int count) {
  Dice dice;
  for (int i = 0; i < count; ++i) {
    const auto [frames, part] = any_clip(dice, video.shape());
    Bytes rgb(frames.size() * part.bytes());
    if (video.read_part(frames, part, rgb)) {
      std::printf("0x%08lx\n", sum_of(rgb));
    } else {
      std::puts("failed");
    }
  }
}

/// As an index would tell it, there and back.
VideoFacts facts_of(const VideoOpener& opener, const VideoFiles& files) {
  const auto facts = opener.scan(files);
  if (!facts) fail(facts.error());
  const auto state = state_of(files.files.front());
  if (!state) fail(state.error());
  const auto line = index_line(
      {.name = files.files.front().filename(), .state = *state, .broken = {}, .facts = *facts});
  const auto entry = index_entry_from(line);
  if (!entry) fail(entry.error());
  if (entry->facts != *facts) fail("the index says other than what was found: " + line);
  return entry->facts;
}

int run(const std::vector<std::string>& words) {
  const auto found = find_videos({words[1]}, "VIDEO");
  if (!found) fail(found.error());
  const auto& files = found->front();
  VideoOpener opener(words[0]);
  if (const auto ready = opener.prepare_for(*found); !ready) fail(ready.error());
  const auto video = opener.open(files);
  if (!video) fail(video.error());
  if (words.size() == 2) {
    for (std::int64_t frame = 0; frame < (*video)->shape().frames; ++frame)
      std::printf("0x%08lx\n", sum_of(whole_frame(**video, frame)));
    return 0;
  }
  const int count = std::atoi(words[3].c_str());
  const auto keeping = [&](const std::string& cache) {
    VideoOpener with_cache(words[0], {.frame_cache_bytes = std::atoll(cache.c_str())});
    if (const auto ready = with_cache.prepare_for(*found); !ready) fail(ready.error());
    return with_cache;
  };
  if (words[2] != "clips") {
    keeping(words[4]);  // for all videos of the process
    words[2] == "seeks" ? seek(**video, count) : print_outcomes(**video, count);
    return 0;
  }
  const auto in_turn = all_frames(**video);
  const auto facts = facts_of(opener, files);
  for (const auto& cache : std::span(words).subspan(4))
    compare_clips(*keeping(cache).open_known(files, facts), in_turn, count);
  std::printf("%d clips are parts of their frames\n", count);
  return 0;
}

}  // namespace
}  // namespace tj::trainer

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_right = words.size() == 2 ||
                        (words.size() == 5 && (words[2] == "seeks" || words[2] == "outcomes")) ||
                        (words.size() >= 5 && words[2] == "clips");
  if (is_right) return tj::trainer::run(words);
  std::fputs("usage: frame_sums PLUGIN VIDEO [seeks|clips|outcomes COUNT CACHE...]\n", stderr);
  return 2;
}
