// What our reader makes of a video, for a comparison with FFmpeg's own:
//
//   frame_sums PLUGIN VIDEO             each frame's Adler-32, as ffmpeg's framecrc has it
//   frame_sums PLUGIN VIDEO SEEKS SEED  reads so many at random, and says what they have left
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "trainer/data/video/video_files.h"
#include "trainer/values/counter_random.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

[[noreturn]] void fail(const Error& error) {
  std::fprintf(stderr, "frame_sums: %s\n", describe(error).c_str());
  std::exit(1);
}

unsigned long sum_of(const Video& video, std::int64_t frame) {
  std::vector<std::byte> rgb(video.shape().frame_bytes());
  const std::int64_t only[] = {frame};
  if (const auto read = video.read(only, rgb); !read) fail(read.error());
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

/// Memory is compared after a first tenth: by then all that is kept is there.
void seek(const Video& video, int seeks, std::uint64_t seed) {
  std::vector<unsigned long> in_turn;
  for (std::int64_t frame = 0; frame < video.shape().frames; ++frame)
    in_turn.push_back(sum_of(video, frame));
  long kilobytes = 0, files = 0;
  for (int i = 0; i < seeks; ++i) {
    const auto frame =
        static_cast<std::int64_t>(mixed(seed + static_cast<std::uint64_t>(i)) % in_turn.size());
    if (sum_of(video, frame) != in_turn[static_cast<std::size_t>(frame)])
      fail({.code = Code::internal,
            .message = "another frame " + std::to_string(frame) + " than before",
            .subject = {}});
    if (i != seeks / 10) continue;
    kilobytes = resident_kilobytes();
    files = open_files();
  }
  std::printf("%ld kB more, %ld files more\n", resident_kilobytes() - kilobytes,
              open_files() - files);
}

}  // namespace
}  // namespace tj::trainer

int main(int argc, char** argv) {
  using namespace tj::trainer;
  if (argc != 3 && argc != 5) {
    std::fputs("usage: frame_sums PLUGIN VIDEO [SEEKS SEED]\n", stderr);
    return 2;
  }
  const auto found = find_videos({argv[2]}, "VIDEO");
  if (!found) fail(found.error());
  VideoOpener opener(argv[1]);
  if (const auto ready = opener.prepare_for(*found); !ready) fail(ready.error());
  const auto video = opener.open(found->front());
  if (!video) fail(video.error());
  if (argc == 5) {
    seek(**video, std::atoi(argv[3]), std::strtoull(argv[4], nullptr, 10));
    return 0;
  }
  for (std::int64_t frame = 0; frame < (*video)->shape().frames; ++frame)
    std::printf("0x%08lx\n", sum_of(**video, frame));
}
