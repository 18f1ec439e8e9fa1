// The variables that name interfaces and adapters. NCCL reads a list of prefixes, exact with "=" in
// front and exclusions with "^" (src/misc/utils.cc, parseStringList); Gloo reads exact names.
#include <algorithm>
#include <cctype>
#include <sstream>

#include "trainer/check/nccl_rules.h"

namespace tj::trainer {
namespace {
using enum Severity;

constexpr std::size_t kNamedMax = 8;

struct NameList {
  bool excludes = false;
  bool is_exact = false;
  std::vector<std::string> names;  // without ports

  bool takes(const std::string& candidate) const {
    return std::ranges::any_of(names, [&](const std::string& name) {
      return is_exact ? candidate == name : candidate.starts_with(name);
    });
  }
};

NameList parse(const std::string& text) {
  NameList list;
  std::size_t at = 0;
  for (; at < text.size() && (text[at] == '^' || text[at] == '='); ++at)
    (text[at] == '^' ? list.excludes : list.is_exact) = true;
  std::istringstream words(text.substr(at));
  for (std::string word; std::getline(words, word, ',');) {
    if (!word.empty()) list.names.push_back(word.substr(0, word.find(':')));
  }
  return list;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t at = 0; at < names.size() && at < kNamedMax; ++at)
    text += (text.empty() ? "" : ", ") + names[at];
  return names.size() > kNamedMax ? text + ", ..." : text;
}

std::vector<std::string> taken(const NameList& list, const std::vector<std::string>& present) {
  std::vector<std::string> names;
  for (const std::string& name : present)
    if (list.takes(name)) names.push_back(name);
  return names;
}

/// Those that a prefix takes and nobody has written.
std::vector<std::string> strangers(const NameList& list, const std::vector<std::string>& present) {
  std::vector<std::string> names = taken(list, present);
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::find(list.names, name) != list.names.end();
  });
  return names;
}

std::vector<std::string> devices(const std::vector<HcaPort>& ports) {
  std::vector<std::string> names;
  for (const HcaPort& port : ports)
    if (names.empty() || names.back() != port.device) names.push_back(port.device);
  return names;
}

bool ends_in_digit(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0;
}

/// What a prefix takes on machines in general: "mlx5_1 also takes mlx5_10 to mlx5_19".
std::string reach_of(const std::string& name) {
  if (!ends_in_digit(name)) return name + " takes every name that begins so";
  return name + " also takes " + name + "0 to " + name + "9";
}

/// "mlx5" ends in a digit, but names a driver: its adapters are mlx5_<n>.
bool is_bare_family(const std::string& name, const std::vector<std::string>& present) {
  const bool is_family = name == "mlx4" || name == "mlx5" || !ends_in_digit(name);
  return is_family && std::ranges::find(present, name) == present.end();
}

std::string exact_form(const NameList& list) {
  std::string text = "=";
  for (const std::string& name : list.names) text += (text == "=" ? "" : ",") + name;
  return text;
}

}  // namespace

std::optional<Finding> judge_adapters(const EnvVar& variable, const LintContext& context) {
  constexpr std::size_t kAdaptersMax = 32;
  const NameList list = parse(variable.value);
  const auto present = devices(context.facts.ports);
  if (list.names.size() > kAdaptersMax)
    return about(variable, warn,
                 "names " + std::to_string(list.names.size()) + " adapters, NCCL takes 32 at most");
  if (list.excludes) {
    return about(variable, warn,
                 "takes all others, those of storage too; the adapters of the training network "
                 "should be named: =mlx5_0,mlx5_1");
  }
  if (!present.empty() && taken(list, present).empty())
    return about(variable, fatal, "no adapter here has such a name; there are " + joined(present));
  if (list.is_exact || list.names.empty()) return std::nullopt;
  const auto more = strangers(list, present);
  for (const std::string& name : list.names) {
    if (!is_bare_family(name, present)) continue;
    return about(variable, warn,
                 "is a prefix: every adapter of that family, those of storage and of Ethernet too" +
                     (more.empty() ? std::string() : " (here " + joined(more) + ")") +
                     "; the ones of the training network should be named: =mlx5_0,mlx5_1");
  }
  if (!more.empty())
    return about(variable, warn,
                 "is a prefix, and takes " + joined(more) + " too; right is " + exact_form(list));
  // Nobody has a hundred adapters times ten.
  const bool is_long = std::ranges::all_of(list.names, [](const std::string& name) {
    return name.size() - name.find_last_not_of("0123456789") > 2;
  });
  const bool is_harmless = !present.empty() || is_long;
  return about(
      variable, is_harmless ? pass : warn,
      is_harmless
          ? "takes prefixes, which happen to be exact here; safer is " + exact_form(list)
          : "takes prefixes: " + reach_of(list.names.front()) + "; right is " + exact_form(list));
}

std::optional<Finding> judge_nccl_interfaces(const EnvVar& variable, const LintContext& context) {
  const NameList list = parse(variable.value);
  const auto& present = context.facts.interfaces;
  if (list.excludes) {
    std::vector<std::string> left;
    for (const std::string& name : present)
      if (!list.takes(name)) left.push_back(name);
    const bool is_lo_left = !left.empty() && joined(left) == "lo";
    const std::string here = present.empty() ? "" : " (here " + joined(left) + ")";
    if (is_lo_left || (left.empty() && !present.empty()))
      return about(variable, fatal,
                   "leaves nothing but lo; right is the one on the route to the "
                   "master, which the trainer sets itself: it can go");
    return about(variable, warn,
                 "takes the first of all others" + here +
                     ", whichever network that is; the trainer sets the one on the route to the "
                     "master itself: it can go");
  }
  const auto names = taken(list, present);
  if (!present.empty() && names.empty())
    return about(variable, fatal,
                 "no interface here has such a name; there are " + joined(present));
  if (list.is_exact || list.names.empty()) return std::nullopt;
  const auto more = strangers(list, present);
  if (!present.empty() && more.empty())
    return about(variable, pass,
                 "is a prefix, which happens to be exact here; safer is " + exact_form(list));
  const std::string reach =
      more.empty() ? ": " + reach_of(list.names.front()) : ", and takes " + joined(more) + " too";
  return about(variable, warn,
               "is a prefix" + reach + "; right is an exact name, " +
                   (ends_in_digit(list.names.front()) ? exact_form(list) : "as =eth0"));
}

std::optional<Finding> judge_gloo_interfaces(const EnvVar& variable, const LintContext& context) {
  if (variable.value.find_first_of("=^") != std::string::npos) {
    return about(variable, fatal,
                 "Gloo knows neither = nor ^, and looks for an interface of just that name; right "
                 "is a plain name, as eth0");
  }
  const auto& present = context.facts.interfaces;
  for (const std::string& name : parse(variable.value).names) {
    if (present.empty() || std::ranges::find(present, name) != present.end()) continue;
    return about(variable, fatal,
                 "there is no interface " + name + " here; there are " + joined(present));
  }
  return std::nullopt;
}

}  // namespace tj::trainer
