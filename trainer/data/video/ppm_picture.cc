#include "trainer/data/video/ppm_picture.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kExtentMax = 65'536;
constexpr std::size_t kHeadBytesMax = 4096;  // with its comments
constexpr int kBrightest = 255;

struct Head {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::size_t bytes = 0;  // after which the pixels begin
};

Error wrong(const fs::path& file, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = file.string()};
}

/// The words of a head: numbers after "P6", with comments between them.
class Words {
 public:
  explicit Words(const std::string& text) : text_(text) {}

  std::optional<std::int64_t> number() {
    skip_blanks();
    std::int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, failure] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (failure != std::errc{} || value < 1 || value > kExtentMax) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  /// One blank ends the head.
  std::size_t end() const { return at_ + 1; }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == '#' || is_blank(text_[at_])))
      at_ = text_[at_] == '#' ? std::min(text_.find('\n', at_), text_.size()) : at_ + 1;
  }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  const std::string& text_;
  std::size_t at_ = 2;
};

Result<Head> read_head(const fs::path& path, std::ifstream& file) {
  if (!file) return wrong(path, "can't be opened");
  std::string text(kHeadBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  file.clear();
  if (!text.starts_with("P6")) return wrong(path, "is no binary PPM picture: it begins without P6");
  Words words(text);
  const auto width = words.number(), height = words.number(), brightest = words.number();
  if (!width || !height || brightest != kBrightest)
    return wrong(path, "has no width, height and 255 in its head");
  return Head{.width = *width, .height = *height, .bytes = words.end()};
}

class PpmPicture final : public Video {
 public:
  PpmPicture(fs::path path, const Head& head) : path_(std::move(path)), head_(head) {}

  VideoShape shape() const override {
    return {.frames = 1, .height = head_.height, .width = head_.width};
  }

  Result<void> read(std::span<const std::int64_t>, std::span<std::byte> rgb) const override {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(head_.bytes));
    file.read(reinterpret_cast<char*>(rgb.data()), static_cast<std::streamsize>(rgb.size()));
    if (static_cast<std::size_t>(file.gcount()) != rgb.size())
      return wrong(path_, "ends early: it has " + std::to_string(file.gcount()) + " of " +
                              std::to_string(rgb.size()) + " bytes of pixels");
    return {};
  }

 private:
  const fs::path path_;
  const Head head_;
};

}  // namespace

Result<std::unique_ptr<Video>> open_ppm_picture(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const auto head = read_head(path, file);
  if (!head) return head.error();
  return std::unique_ptr<Video>(std::make_unique<PpmPicture>(path, *head));
}

Result<void> write_ppm_picture(const fs::path& path, const VideoShape& shape,
                               std::span<const std::byte> rgb) {
  TJ_CHECK(rgb.size() == shape.frame_bytes(), "one whole picture");
  const std::string head =
      "P6\n" + std::to_string(shape.width) + " " + std::to_string(shape.height) + "\n255\n";
  const auto failed = [&] {
    return Error{.code = Code::unavailable,
                 .message = std::string("can't be written: ") + std::strerror(errno),
                 .subject = path.string()};
  };
  std::FILE* const file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) return failed();
  const bool is_whole = std::fwrite(head.data(), 1, head.size(), file) == head.size() &&
                        std::fwrite(rgb.data(), 1, rgb.size(), file) == rgb.size() &&
                        std::fflush(file) == 0;
  const auto cut = failed();
  if (std::fclose(file) != 0) return failed();
  return is_whole ? Result<void>() : cut;
}

}  // namespace tj::trainer
