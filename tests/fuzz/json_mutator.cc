// Mutates JSON as JSON: bytes alone rarely get past the parser, and types that are wrong in one
// place of an otherwise good document are what hurts. Inputs stay readable texts.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t size_max);

namespace {
using nlohmann::json;
using Dice = std::minstd_rand;
constexpr int kDepthMax = 600;

const json kOdd = json::parse(R"([
  null, true, false, 0, 1, -1, 2, 127, 137, 65536, 2147483647, 2147483648, -2147483649, 4294967296,
  9223372036854775807, -9223372036854775808, 18446744073709551615, 0.5, -0.0, 1e300, -1e300, 1e-300,
  "", "x", "y", "\u00e9\u4e2d\ud83d\ude00", "\u0000", "a/b", "../..", "/", "1", "-1", "1e3", "Always",
  "2026-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "0000-00-00T00:00:00Z",
  [], {}, [null], ["x"], [1], [[]], [{}], {"": null}, {"x": 1}, {"x": []}, {"x": {}}, {"name": "x"}])");

std::size_t below(Dice& dice, std::size_t bound) { return bound == 0 ? 0 : dice() % bound; }

json deep(Dice& dice) {
  json value = 1;
  const std::size_t depth = below(dice, kDepthMax);
  for (std::size_t level = 0; level < depth; ++level)
    value = dice() % 2 ? json::array({value}) : json{{"x", value}};
  return value;
}

json odd_value(Dice& dice) {
  if (dice() % 64 == 0) return deep(dice);
  return kOdd[below(dice, kOdd.size())];
}

json& child(json& parent, std::size_t index) {
  if (parent.is_array()) return parent[index];
  return std::next(parent.begin(), static_cast<std::ptrdiff_t>(index)).value();
}

json& somewhere(json& document, Dice& dice) {
  json* node = &document;
  while (node->is_structured() && !node->empty() && dice() % 5 != 0)
    node = &child(*node, below(dice, node->size()));
  return *node;
}

std::string some_key(const json& object, Dice& dice) {
  static const char* const kNew[] = {"", "x", "name", "metadata", "spec", "status"};
  if (object.empty() || dice() % 2) return kNew[below(dice, std::size(kNew))];
  return std::next(object.begin(), static_cast<std::ptrdiff_t>(below(dice, object.size()))).key();
}

void change_text(json& node) {
  std::string text = node.get<std::string>();
  const std::size_t size = text.size();
  text.resize(size + 16);
  text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
  node = text;
}

void add_to(json& node, json value, Dice& dice) {
  if (node.is_array()) {
    const std::size_t copies = dice() % 16 == 0 ? 20 : 1;
    for (std::size_t copy = 0; copy < copies; ++copy) node.push_back(value);
  } else if (node.is_object()) {
    node[some_key(node, dice)] = std::move(value);
  } else {
    node = std::move(value);
  }
}

void remove_from(json& node, Dice& dice) {
  if (!node.is_structured() || node.empty()) {
    node = nullptr;
  } else if (node.is_array()) {
    node.erase(below(dice, node.size()));
  } else {
    node.erase(std::next(node.begin(), static_cast<std::ptrdiff_t>(below(dice, node.size()))));
  }
}

void change(json& document, Dice& dice) {
  json& node = somewhere(document, dice);
  switch (dice() % 5) {
    case 0: return node.is_string() ? change_text(node) : void(node = odd_value(dice));
    case 1: return remove_from(node, dice);
    case 2: return add_to(node, odd_value(dice), dice);
    case 3: return add_to(node, json(somewhere(document, dice)), dice);
    default: node = odd_value(dice);
  }
}

/// 0 when it does not fit.
std::size_t write(const json& document, std::uint8_t* data, std::size_t size_max) {
  const std::string text = document.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > size_max) return 0;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t size_max, unsigned seed) {
  Dice dice(seed);
  json document = json::parse(data, data + size, nullptr, false);
  if (document.is_discarded() || dice() % 8 == 0) return LLVMFuzzerMutate(data, size, size_max);
  for (std::size_t changes = 1 + below(dice, 3); changes > 0; --changes) change(document, dice);
  const std::size_t written = write(document, data, size_max);
  return written != 0 ? written : LLVMFuzzerMutate(data, size, size_max);
}

/// A value of the second input takes a place in the first.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* first, std::size_t first_size,
                                                 const std::uint8_t* second,
                                                 std::size_t second_size, std::uint8_t* out,
                                                 std::size_t out_size_max, unsigned seed) {
  Dice dice(seed);
  json document = json::parse(first, first + first_size, nullptr, false);
  json other = json::parse(second, second + second_size, nullptr, false);
  if (document.is_discarded() || other.is_discarded()) return 0;
  add_to(somewhere(document, dice), somewhere(other, dice), dice);
  return write(document, out, out_size_max);
}
