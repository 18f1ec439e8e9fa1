#include "trainer/predict/remedies.h"

#include <algorithm>
#include <cstdlib>

#include "trainer/predict/forecast.h"

namespace tj::trainer {
namespace {

constexpr double kSavedShareMin = 0.01;

bool is_enough(const Remedy& remedy, const RankRoom& room) {
  return room.bytes && remedy.bytes <= *room.bytes;
}

std::string need_text(const MemoryShortage& shortage) {
  const auto& room = shortage.room;
  const std::string need = "needs about " + bytes_text(shortage.bytes);
  if (!room.bytes) return need;
  const std::string there = bytes_text(*room.bytes) + " " + room.origin;
  if (shortage.bytes > *room.bytes) return need + ", and has " + there;
  return need + " by forecast, and there are " + there + ": something else may hold a part of them";
}

}  // namespace

std::string takes_less_text(std::span<const Remedy> remedies, double bytes) {
  std::string text;
  for (const auto& remedy : remedies) {
    if (remedy.bytes > (1 - kSavedShareMin) * bytes) continue;
    text += (text.empty() ? "with " : ", with ") + remedy.flag;
    if (!remedy.note.empty()) text += " (" + remedy.note + ")";
    text += " " + bytes_text(remedy.bytes);
  }
  return text;
}

std::string describe(const MemoryShortage& shortage) {
  std::string text = need_text(shortage);
  const auto less = takes_less_text(shortage.remedies, shortage.bytes);
  if (less.empty()) return text + "; no flag is known that takes less";
  text += "; " + less;
  const auto fits = [&](const Remedy& remedy) { return is_enough(remedy, shortage.room); };
  if (!shortage.room.bytes || std::ranges::any_of(shortage.remedies, fits)) return text;
  text += "; none of them is enough by itself";
  return shortage.together.empty() ? text : text + ", " + shortage.together + " is";
}

std::optional<double> told_capacity(std::string_view told) {
  constexpr std::string_view kBefore = "total capacity of ";
  constexpr double kKibi = 1024;
  const auto found = told.find(kBefore);
  if (found == std::string_view::npos) return std::nullopt;
  const std::string rest(told.substr(found + kBefore.size(), 40));
  char* end = nullptr;
  double bytes = std::strtod(rest.c_str(), &end);
  if (end == rest.c_str() || !(bytes > 0)) return std::nullopt;
  const std::string_view unit(end);
  if (unit.starts_with(" GiB")) return bytes * kKibi * kKibi * kKibi;
  if (unit.starts_with(" MiB")) return bytes * kKibi * kKibi;
  return std::nullopt;
}

}  // namespace tj::trainer
