#include "trainer/checkpoint/slice_name.h"

#include <charconv>

namespace tj::trainer {
namespace {

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || rest != end || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::string slice_name(const std::string& tensor, const ElementRange& range) {
  return tensor + "[" + std::to_string(range.begin) + ":" + std::to_string(range.end) + "]";
}

std::optional<SliceName> parse_slice_name(std::string_view name) {
  const auto open = name.rfind('[');
  const auto colon = name.rfind(':');
  const bool has_form = name.ends_with(']') && open != name.npos && colon != name.npos;
  if (!has_form || colon < open) return std::nullopt;
  const auto begin = number_of(name.substr(open + 1, colon - open - 1));
  const auto end = number_of(name.substr(colon + 1, name.size() - colon - 2));
  if (!begin || !end || *begin >= *end) return std::nullopt;
  return SliceName{.tensor = std::string(name.substr(0, open)),
                   .range = {.begin = *begin, .end = *end}};
}

}  // namespace tj::trainer
