#include "trainer/data/normal_form.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "contract/utf8.h"
#include "trainer/data/text_character.h"

namespace tj::trainer {
namespace {

struct Decomposition {
  char32_t code;
  char32_t first;
  char32_t second;  // 0: none
};
struct CombiningRun {
  char32_t first;
  char32_t last;
  int order;  // "canonical combining class"
};

// clang-format off
#include "trainer/data/normal_forms.inc"  // the tables, in this namespace
// clang-format on

// Hangul is composed by a rule (Unicode, section 3.12).
constexpr char32_t kHangul = 0xac00, kLead = 0x1100, kVowel = 0x1161, kTail = 0x11a7;
constexpr char32_t kLeads = 19, kVowels = 21, kTails = 28, kSyllables = kLeads * kVowels * kTails;
constexpr char32_t kFirstThatMayMatter = 0x300;  // what is before it stays as it is, by itself

bool is_between(char32_t code, char32_t first, char32_t count) {
  return code >= first && code - first < count;
}

class NormalForms {
 public:
  static const NormalForms& all() {
    static const NormalForms forms;
    return forms;
  }

  int order_of(char32_t code) const {
    if (code < kFirstThatMayMatter) return 0;
    const auto* const run = std::ranges::upper_bound(kCombining, code, {}, &CombiningRun::first);
    return run == std::begin(kCombining) || code > std::prev(run)->last ? 0 : std::prev(run)->order;
  }

  /// Whether text with this character may have another form.
  bool may_matter(char32_t code) const {
    if (code < kFirstThatMayMatter || is_between(code, 0x4e00, 0x5200)) return false;  // ideographs
    if (is_between(code, kHangul, kSyllables)) return false;
    return order_of(code) != 0 || unstable_.contains(code) || is_between(code, kVowel, kVowels) ||
           is_between(code, kTail + 1, kTails - 1);
  }

  void decompose(char32_t code, std::u32string& into) const {
    if (is_between(code, kHangul, kSyllables)) {
      const auto index = code - kHangul;
      into += kLead + index / (kVowels * kTails);
      into += kVowel + index % (kVowels * kTails) / kTails;
      if (index % kTails != 0) into += kTail + index % kTails;
      return;
    }
    const auto* const row =
        std::ranges::lower_bound(kDecompositions, code, {}, &Decomposition::code);
    if (row == std::end(kDecompositions) || row->code != code) {
      into += code;
      return;
    }
    decompose(row->first, into);  // the table's rows end: no character is made of itself
    if (row->second != 0) into += row->second;
  }

  /// 0: they stay two.
  char32_t composed(char32_t first, char32_t second) const {
    if (is_between(first, kLead, kLeads) && is_between(second, kVowel, kVowels))
      return kHangul + ((first - kLead) * kVowels + (second - kVowel)) * kTails;
    if (is_between(first, kHangul, kSyllables) && (first - kHangul) % kTails == 0 &&
        is_between(second, kTail + 1, kTails - 1))
      return first + (second - kTail);
    const auto found = pairs_.find(pair_of(first, second));
    return found == pairs_.end() ? 0 : found->second;
  }

 private:
  static std::uint64_t pair_of(char32_t first, char32_t second) {
    return std::uint64_t{first} << 32 | second;
  }
  NormalForms() {
    for (const auto& row : kDecompositions) {
      const bool is_never = row.second == 0 ||
                            std::ranges::find(kNeverComposed, row.code) != std::end(kNeverComposed);
      if (is_never) {
        unstable_.insert(row.code);
        continue;
      }
      pairs_.emplace(pair_of(row.first, row.second), row.code);
      unstable_.insert(row.second);
    }
  }

  std::unordered_map<std::uint64_t, char32_t> pairs_;
  std::unordered_set<char32_t> unstable_;
};

/// Runs of characters that move are brought into the order of their classes.
void order(std::u32string& text, const NormalForms& forms) {
  for (auto at = text.begin(); at != text.end();) {
    const auto end =
        std::find_if(at, text.end(), [&](char32_t code) { return forms.order_of(code) == 0; });
    if (end - at > 1)
      std::stable_sort(at, end, [&](char32_t left, char32_t right) {
        return forms.order_of(left) < forms.order_of(right);
      });
    at = end == text.end() ? end : end + 1;
  }
}

/// Each character joins the last one that begins, where nothing between them is in its way.
void compose(std::u32string& text, const NormalForms& forms) {
  std::size_t kept = 0;
  std::size_t start = text.size();  // of the last character that begins; none yet
  int last_order = 0;               // of what was kept behind it
  bool is_adjacent = false;
  for (const char32_t code : std::u32string(text)) {
    const int own = forms.order_of(code);
    const bool is_free = start < kept && (is_adjacent || (last_order < own && last_order != 0));
    if (const char32_t both = is_free ? forms.composed(text[start], code) : 0; both != 0) {
      text[start] = both;
      continue;
    }
    text[kept++] = code;
    is_adjacent = own == 0;
    last_order = own;
    if (own == 0) start = kept - 1;
  }
  text.resize(kept);
}

}  // namespace

bool may_need_composing(std::string_view text) {
  const auto& forms = NormalForms::all();
  for (std::size_t at = 0; at < text.size();) {
    const auto character = text_character_at(text, at);
    if (forms.may_matter(character.code)) return true;
    at += character.bytes;
  }
  return false;
}

std::string composed(std::string_view text) {
  const auto& forms = NormalForms::all();
  std::u32string codes;
  for (std::size_t at = 0; at < text.size();) {
    const auto character = text_character_at(text, at);
    forms.decompose(character.code, codes);
    at += character.bytes;
  }
  order(codes, forms);
  compose(codes, forms);
  std::string made;
  for (const char32_t code : codes) append_utf8(made, code);
  return made;
}

}  // namespace tj::trainer
