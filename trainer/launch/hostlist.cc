#include "trainer/launch/hostlist.h"

#include <climits>

#include "contract/launch_env.h"

namespace tj::trainer {
namespace {
using Names = std::vector<std::string>;

Error malformed(std::string_view text, const std::string& what) {
  return Error{.code = Code::invalid,
               .message = "is \"" + std::string(text) + "\"; " + what,
               .subject = {},
               .retry_after = {}};
}

/// Parts between the commas that stand outside of brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    if (c == '[') ++depth;
    if (c == ']') --depth;
    const bool ends = at == text.size() || (c == ',' && depth == 0);
    if (!ends) continue;
    parts.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  return parts;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "001-003" -> 001, 002, 003; the width of the first number is kept. False when it is no range, or
/// there are too many numbers.
bool append_range(std::string_view range, Names& numbers) {
  const auto dash = range.find('-');
  const auto low = range.substr(0, dash);
  const auto high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  if (!is_number(low) || !is_number(high)) return false;
  const int first = std::stoi(std::string(low));
  const int last = std::stoi(std::string(high));
  if (last < first || numbers.size() + static_cast<std::size_t>(last - first) >= kHostsMax)
    return false;
  for (int number = first; number <= last; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
    numbers.push_back(std::move(digits));
  }
  return true;
}

/// One name with any number of brackets, as in "rack[1-2]n[01-04]"; empty when it is malformed.
Names expand_name(std::string_view name) {
  Names done{""};
  while (!name.empty()) {
    const auto open = name.find('[');
    const auto plain = name.substr(0, open);
    Names numbers{""};
    std::size_t end = name.size();
    if (open != std::string_view::npos) {
      const auto close = name.find(']', open);
      if (close == std::string_view::npos) return {};
      numbers.clear();
      for (const auto range : split(name.substr(open + 1, close - open - 1))) {
        if (!append_range(range, numbers)) return {};
      }
      end = close + 1;
    }
    if (plain.find(']') != std::string_view::npos || plain.size() > kHostBytesMax) return {};
    if (done.size() * numbers.size() > kHostsMax) return {};
    Names longer;
    for (const auto& head : done) {
      for (const auto& number : numbers) longer.push_back(head + std::string(plain) + number);
      if (longer.back().size() > kHostBytesMax) return {};
    }
    done = std::move(longer);
    name.remove_prefix(end);
  }
  return done.front().empty() ? Names{} : done;
}

}  // namespace

Result<Names> expand_hostlist(std::string_view text) {
  Names hosts;
  for (const auto name : split(text)) {
    Names expanded = expand_name(name);
    if (expanded.empty() || hosts.size() + expanded.size() > kHostsMax)
      return malformed(text, "it must be a list of hosts, as in node[001-003,007]");
    hosts.insert(hosts.end(), expanded.begin(), expanded.end());
  }
  return hosts;
}

Result<std::vector<int>> expand_task_counts(std::string_view text) {
  std::vector<int> counts;
  for (const auto part : split(text)) {
    const auto open = part.find("(x");
    const bool repeats = open != std::string_view::npos && part.ends_with(')');
    const auto times_text =
        repeats ? part.substr(open + 2, part.size() - open - 3) : std::string_view("1");
    const auto count = parse_int("", part.substr(0, open), 1, INT_MAX);
    const auto times = parse_int("", times_text, 1, static_cast<int>(kHostsMax));
    if (!count || !times || counts.size() + static_cast<std::size_t>(*times) > kHostsMax)
      return malformed(text, "it must be the tasks of each node, as in 8(x2),4");
    counts.insert(counts.end(), static_cast<std::size_t>(*times), *count);
  }
  return counts;
}

}  // namespace tj::trainer
