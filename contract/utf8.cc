#include "contract/utf8.h"

#include <algorithm>
#include <cstring>

namespace tj {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// What a leading byte asks for: how many bytes in all, and which second byte.
struct Lead {
  std::size_t bytes = 0;  // 0: no leading byte
  std::uint8_t second_min = 0x80;
  std::uint8_t second_max = 0xbf;
};

Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {.bytes = 1};
  if (byte < 0xc2 || byte > 0xf4) return {};
  if (byte < 0xe0) return {.bytes = 2};
  if (byte == 0xe0) return {.bytes = 3, .second_min = 0xa0};
  if (byte == 0xed) return {.bytes = 3, .second_max = 0x9f};
  if (byte < 0xf0) return {.bytes = 3};
  if (byte == 0xf0) return {.bytes = 4, .second_min = 0x90};
  if (byte == 0xf4) return {.bytes = 4, .second_max = 0x8f};
  return {.bytes = 4};
}

/// How many of the first bytes fit together; all of lead.bytes make a sequence.
std::size_t matching_bytes(std::string_view text, const Lead& lead) {
  const std::size_t end = std::min(lead.bytes, text.size());
  for (std::size_t i = 1; i < end; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    const std::uint8_t min = i == 1 ? lead.second_min : 0x80;
    const std::uint8_t max = i == 1 ? lead.second_max : 0xbf;
    if (byte < min || byte > max) return i;
  }
  return end;
}

/// Much text is nothing else, and gigabytes of it are looked through.
bool begins_with_eight_of_ascii(std::string_view text) {
  std::uint64_t eight = 0;
  if (text.size() < sizeof eight) return false;
  std::memcpy(&eight, text.data(), sizeof eight);
  return (eight & 0x8080808080808080U) == 0;
}

}  // namespace

std::size_t utf8_sequence_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const Lead lead = lead_of(static_cast<std::uint8_t>(text[0]));
  return lead.bytes > 0 && matching_bytes(text, lead) == lead.bytes ? lead.bytes : 0;
}

std::size_t valid_utf8_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (begins_with_eight_of_ascii(text.substr(at))) {
      at += 8;
      continue;
    }
    const std::size_t bytes = utf8_sequence_bytes(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
  }
  return at;
}

std::string with_invalid_utf8_replaced(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_bytes(text);
    result += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    const Lead lead = lead_of(static_cast<std::uint8_t>(text[0]));
    text.remove_prefix(std::max<std::size_t>(1, matching_bytes(text, lead)));
    result += kReplacement;
  }
  return result;
}

std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && is_utf8_continuation(text[end])) --end;
  return text.substr(0, end);
}

std::string_view utf8_suffix(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t begin = text.size() - bytes_max;
  while (begin < text.size() && is_utf8_continuation(text[begin])) ++begin;
  return text.substr(begin);
}

void append_utf8(std::string& text, std::uint32_t code_point) {
  const bool is_surrogate = code_point >= 0xd800 && code_point < 0xe000;
  if (is_surrogate || code_point > 0x10ffff) {
    text += kReplacement;
    return;
  }
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3f));
  } else {
    put(0xf0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3f));
    put(0x80 | (code_point >> 6 & 0x3f));
  }
  put(0x80 | (code_point & 0x3f));
}

}  // namespace tj
