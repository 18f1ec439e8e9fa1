// Names by patterns, as in a shell, and which names a pattern without any could have meant. Pure.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tj::trainer {

/// "*" stands for any characters, "?" for one, "[ab]" for one of several (fnmatch(3)).
bool matches(const std::string& pattern, const std::string& name);

/// How many characters of the pattern must change, come or go before it matches: Levenshtein's
/// distance, in which "*" and "?" cost nothing. "[" is a character like others.
std::size_t glob_distance(std::string_view pattern, std::string_view name);

/// Up to three of `names` that differ least from the pattern, the nearest first, then in order.
/// That it lacks the front of a name counts as one character.
std::vector<std::string> nearest_names(std::string_view pattern,
                                       std::span<const std::string> names);

/// "a, b or c"
std::string one_of_text(std::span<const std::string> names);

}  // namespace tj::trainer
