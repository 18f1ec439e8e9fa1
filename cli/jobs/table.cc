#include "cli/jobs/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "cli/plain_text.h"
#include "contract/utf8.h"

namespace tj {
namespace {

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_utf8_continuation(c); }));
}

std::string counted(long long number, const char* unit) { return std::to_string(number) + unit; }

/// "3m54s", or "3m" where nothing is left.
std::string pair_text(long long first, const char* unit, long long rest, const char* rest_unit) {
  return counted(first, unit) + (rest == 0 ? "" : counted(rest, rest_unit));
}

}  // namespace

std::string cut_line(std::string_view text, std::size_t columns) {
  const std::string plain = plain_line(text);
  if (characters(plain) <= columns) return plain;
  std::size_t at = 0;
  for (std::size_t seen = 0; at < plain.size(); ++at) {
    if (!is_utf8_continuation(plain[at]) && ++seen == std::max<std::size_t>(columns, 1)) break;
  }
  return plain.substr(0, at) + "…";
}

std::string table_text(const std::vector<Row>& rows) {
  std::vector<Row> cells = rows;
  std::vector<std::size_t> widths;
  for (Row& row : cells) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = row[i].empty() ? "-" : plain_line(row[i]);
      widths[i] = std::max(widths[i], characters(row[i]));
    }
  }
  std::string text;
  for (const Row& row : cells) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      text += row[i] + std::string(widths[i] - characters(row[i]) + 2, ' ');
    if (!row.empty()) text += row.back();
    text += '\n';
  }
  return text;
}

// The bounds are those of k8s.io/apimachinery/pkg/util/duration.
std::string duration_text(std::chrono::seconds time) {
  const long long seconds = std::max<long long>(time.count(), 0);
  const long long minutes = seconds / 60;
  const long long hours = minutes / 60;
  const long long days = hours / 24;
  if (seconds < 120) return counted(seconds, "s");
  if (minutes < 10) return pair_text(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return counted(minutes, "m");
  if (hours < 8) return pair_text(hours, "h", minutes % 60, "m");
  if (hours < 48) return counted(hours, "h");
  if (days < 8) return pair_text(days, "d", hours % 24, "h");
  if (days < 730) return counted(days, "d");
  if (days < 365 * 8) return pair_text(days / 365, "y", days % 365, "d");
  return counted(days / 365, "y");
}

std::string progress_bar(long long done, long long total, std::size_t width) {
  if (total <= 0) return "";
  const double share = std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0);
  const auto full = static_cast<std::size_t>(share * static_cast<double>(width));
  return "[" + std::string(full, '#') + std::string(width - full, '-') + "]";
}

std::string number_text(double number) {
  std::array<char, 32> text{};
  if (std::abs(number) >= 1000 && std::abs(number) < 1e15) {
    std::snprintf(text.data(), text.size(), "%.0f", number);
  } else {
    std::snprintf(text.data(), text.size(), "%.4g", number);
  }
  return text.data();
}

}  // namespace tj
