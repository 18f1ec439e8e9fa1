// Draws the picture of `trainer plan` in the look of docs/measurements: readable on a light and on
// a dark page.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "trainer/predict/forecast.h"

namespace tj::trainer {
namespace {

constexpr double kWidth = 760, kHeight = 340, kLeft = 60, kRight = 740, kTop = 70, kBottom = 300;
constexpr const char* kTextColour = "#7a7f87";
constexpr const char* kColours[] = {"#8a8f98", "#2f6fde", "#d9822b", "#6a9a3b", "#a05fc9"};

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string escaped(const std::string& words) {
  std::string text;
  for (const char letter : words) {
    if (letter == '&')
      text += "&amp;";
    else if (letter == '<')
      text += "&lt;";
    else if (letter == '>')
      text += "&gt;";
    else
      text += letter;
  }
  return text;
}

struct Point {
  double x = 0, y = 0;
};

std::string label(Point at, const std::string& words, const char* anchor, int size = 12) {
  return format(R"(<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="%s" )", at.x, at.y,
                anchor, size, kTextColour) +
         R"(font-family="sans-serif">)" + escaped(words) + "</text>\n";
}

std::string line(Point from, Point to, const char* dashes = "") {
  return format(R"(<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"%s/>)", from.x, from.y,
                to.x, to.y, kTextColour, dashes) +
         "\n";
}

double y_of(double share) { return kBottom - share * (kBottom - kTop); }

/// Passes by their place: each step to the right is about twice as many.
std::vector<std::int64_t> passes_of(const Forecast& forecast) {
  std::vector<std::int64_t> passes;
  for (const auto& row : forecast.table)
    if (passes.empty() || passes.back() != row.setting.passes) passes.push_back(row.setting.passes);
  return passes;
}

double x_of(const std::vector<std::int64_t>& passes, std::int64_t value) {
  const double most = std::log2(static_cast<double>(passes.back()));
  const double place = most > 0 ? std::log2(static_cast<double>(value)) / most : 0.5;
  constexpr double kMargin = 20;
  return kLeft + kMargin + place * (kRight - kLeft - 2 * kMargin);
}

std::string axes(const Forecast& forecast, const std::vector<std::int64_t>& passes) {
  std::string text;
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0})
    text += label({kLeft - 8, y_of(share) + 4}, format("%.0f %%", 100 * share), "end");
  text += line({kLeft, y_of(0)}, {kRight, y_of(0)});
  text += line({kLeft, y_of(1)}, {kRight, y_of(1)}, R"( stroke-opacity="0.3")");
  const double target = y_of(forecast.inputs.target);
  text += line({kLeft, target}, {kRight, target}, R"( stroke-dasharray="4 4")");
  for (const auto value : passes)
    text += label({x_of(passes, value), kBottom + 18}, std::to_string(value), "middle");
  return text +
         label({(kLeft + kRight) / 2, kBottom + 34}, "passes in a step (--accumulation)", "middle");
}

std::string curve(const Forecast& forecast, const std::vector<std::int64_t>& passes,
                  std::size_t codec) {
  const char* const colour = kColours[codec % std::size(kColours)];
  std::string points, dots;
  for (const auto& row : forecast.table) {
    if (row.setting.codec != kCodecs[codec]) continue;
    const Point at{x_of(passes, row.setting.passes), y_of(row.step.efficiency())};
    points += format("%.1f,%.1f ", at.x, at.y);
    dots += format(R"(<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>)", at.x, at.y, colour) + "\n";
  }
  if (points.empty()) return "";
  points.pop_back();
  const double left = kLeft + static_cast<double>(codec) * 130;
  return format(R"(<rect x="%.1f" y="38.0" width="12.0" height="12.0" fill="%s" rx="2"/>)", left,
                colour) +
         "\n" + label({left + 18, 48}, to_string(kCodecs[codec]), "start") +
         R"(<polyline fill="none" stroke-width="2" stroke=")" + colour + R"(" points=")" + points +
         "\"/>\n" + dots;
}

}  // namespace

std::string forecast_picture(const Forecast& forecast) {
  const auto passes = passes_of(forecast);
  std::string text = format(R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" )",
                            kWidth, kHeight) +
                     format(R"(width="%.0f" height="%.0f">)", kWidth, kHeight) + "\n";
  text += label({20, 24},
                "Efficiency of " + forecast.inputs.model + " on " +
                    std::to_string(forecast.inputs.step.ranks) + " ranks over " +
                    bytes_text(forecast.inputs.step.link.bytes_per_second) + "/s",
                "start", 15);
  text += axes(forecast, passes);
  for (std::size_t codec = 0; codec < kCodecs.size(); ++codec)
    text += curve(forecast, passes, codec);
  return text + "</svg>\n";
}

}  // namespace tj::trainer
