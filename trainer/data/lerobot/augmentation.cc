#include "trainer/data/lerobot/augmentation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "trainer/values/counter_random.h"

namespace tj::trainer {
namespace {

constexpr double kPart = 0.95;  // of height and width that is cut out
constexpr double kTurnMax = 5 * std::numbers::pi / 180;
constexpr double kBrightness = 0.3;  // a factor is within 1 -+ so much
constexpr double kContrast = 0.4;
constexpr double kSaturation = 0.5;
constexpr std::size_t kChannels = 3;
/// Rec. 601, as Pillow's and augmax' grey, of a thousand.
constexpr int kGrey[] = {299, 587, 114};
constexpr int kGreyParts = 1000;
/// Places between pixels are whole numbers of 2^-16 pixels, shares of the four around it of 2^-8:
/// so that a picture has the same bytes on every machine.
constexpr int kPlaceBits = 16;
constexpr int kShareBits = 8;

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0;
  for (const char letter : text) hash = mixed(hash ^ static_cast<std::uint8_t>(letter));
  return hash;
}

/// Numbers of [0, 1), one after another.
class Draws {
 public:
  explicit Draws(std::uint64_t key) : state_(key) {}
  double next() {
    state_ = mixed(state_ + 1);
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }
  double around(double middle, double reach) { return middle + reach * (2 * next() - 1); }

 private:
  std::uint64_t state_;
};

int grey_of(const std::byte* pixel) {
  int grey = 0;
  for (std::size_t i = 0; i < kChannels; ++i) grey += kGrey[i] * static_cast<int>(pixel[i]);
  return grey;
}

std::int64_t place_of(double pixels) {
  return static_cast<std::int64_t>(std::floor(pixels * (1 << kPlaceBits) + 0.5));
}

/// Reads a picture between its pixels; black around it.
class Sampled {
 public:
  Sampled(std::span<const std::byte> rgb, PictureSize size) : rgb_(rgb), size_(size) {}

  /// The pixel at a place, in units of kPlaceBits.
  void write(std::int64_t row, std::int64_t column, std::byte* place) const {
    constexpr auto kDrop = kPlaceBits - kShareBits;
    constexpr std::int64_t kOne = 1 << kShareBits;
    const auto down = static_cast<int>((row >> kDrop) & (kOne - 1));
    const auto right = static_cast<int>((column >> kDrop) & (kOne - 1));
    const auto r = row >> kPlaceBits, c = column >> kPlaceBits;
    const auto *const a = pixel(r, c), *const b = pixel(r, c + 1), *const d = pixel(r + 1, c),
                      *const e = pixel(r + 1, c + 1);
    constexpr int kWhole = 1 << kShareBits;
    for (std::size_t i = 0; i < kChannels; ++i) {
      const int upper = static_cast<int>(a[i]) * (kWhole - right) + static_cast<int>(b[i]) * right;
      const int lower = static_cast<int>(d[i]) * (kWhole - right) + static_cast<int>(e[i]) * right;
      const int sum = upper * (kWhole - down) + lower * down;
      place[i] = static_cast<std::byte>((sum + (1 << (2 * kShareBits - 1))) >> (2 * kShareBits));
    }
  }

 private:
  const std::byte* pixel(std::int64_t row, std::int64_t column) const {
    static constexpr std::byte kBlack[kChannels] = {};
    const bool is_inside = row >= 0 && column >= 0 && row < size_.height && column < size_.width;
    return is_inside ? rgb_.data() + (row * size_.width + column) * std::int64_t{kChannels}
                     : kBlack;
  }
  std::span<const std::byte> rgb_;
  PictureSize size_;
};

/// The part is made as large as the picture, and turned about its middle: in one step, so that
/// pixels are mixed once.
void move(std::span<std::byte> rgb, PictureSize size, const Augmentation& by) {
  const std::vector<std::byte> before(rgb.begin(), rgb.end());
  const Sampled picture(before, size);
  const auto height = static_cast<double>(size.height), width = static_cast<double>(size.width);
  const auto sine = std::sin(by.turn) * kPart, cosine = std::cos(by.turn) * kPart;
  // The place of the first pixel, and how it goes on with each row and column.
  const auto y = 0.5 - height / 2, x = 0.5 - width / 2;
  const auto top = (by.top * (1 - kPart) + kPart / 2) * height - 0.5;
  const auto left = (by.left * (1 - kPart) + kPart / 2) * width - 0.5;
  const auto first_row = place_of(top + cosine * y - sine * x);
  const auto first_column = place_of(left + sine * y + cosine * x);
  const auto along = place_of(cosine), across = place_of(sine);
  auto* place = rgb.data();
  for (std::int64_t row = 0; row < size.height; ++row) {
    auto from_row = first_row + row * along, from_column = first_column + row * across;
    for (std::int64_t column = 0; column < size.width; ++column, place += kChannels) {
      picture.write(from_row, from_column, place);
      from_row -= across;
      from_column += along;
    }
  }
}

/// Brightness, contrast, saturation, in this order; as one sum, since each is linear.
void colour(std::span<std::byte> rgb, const Augmentation& by) {
  std::int64_t greys = 0;
  for (std::size_t i = 0; i < rgb.size(); i += kChannels) greys += grey_of(&rgb[i]);
  const auto pixels = static_cast<double>(rgb.size() / kChannels);
  const auto mean = static_cast<double>(greys) / kGreyParts / pixels * by.brightness;
  const auto strength = by.contrast * by.brightness;
  const auto own = static_cast<float>(strength * by.saturation);
  const auto of_grey = static_cast<float>(strength * (1 - by.saturation) / kGreyParts);
  const auto rest = static_cast<float>(mean * (1 - by.contrast) + 0.5);
  for (std::size_t i = 0; i < rgb.size(); i += kChannels) {
    const auto grey = of_grey * static_cast<float>(grey_of(&rgb[i])) + rest;
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      const auto value = own * static_cast<float>(rgb[i + channel]) + grey;
      rgb[i + channel] = static_cast<std::byte>(static_cast<int>(std::clamp(value, 0.0F, 255.0F)));
    }
  }
}

}  // namespace

Augmentation augmentation_of(std::uint64_t sample_key, std::string_view camera) {
  Draws draws(mixed(sample_key ^ hash_of(camera)));
  Augmentation by{.is_moved = camera.find("wrist") == std::string_view::npos};
  by.top = draws.next();
  by.left = draws.next();
  by.turn = draws.around(0, kTurnMax);
  by.brightness = draws.around(1, kBrightness);
  by.contrast = draws.around(1, kContrast);
  by.saturation = draws.around(1, kSaturation);
  return by;
}

void augment(std::span<std::byte> rgb, PictureSize size, const Augmentation& by) {
  if (by.is_moved) move(rgb, size, by);
  colour(rgb, by);
}

}  // namespace tj::trainer
