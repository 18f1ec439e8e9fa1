#include "trainer/checkpoint/torch_pickle.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "contract/result.h"
#include "trainer/values/flat_layout.h"

namespace tj::trainer {
namespace {

constexpr std::size_t kValuesMax = 500'000;
constexpr std::size_t kRankMax = 16;  // dimensions of a tensor

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Kind { none, integer, other, text, global, mark, tuple, list, dict, storage, tensor };

/// Values refer to each other by number, so that one that is remembered can still be filled.
using Number = std::size_t;

struct Value {
  Kind kind = Kind::none;
  std::int64_t integer = 0;
  std::string text = {};           // of a text; of a global "module name"; the key of a storage
  std::string dtype = {};          // of a storage
  std::vector<Number> parts = {};  // of a tuple or list; of a dict key, value, key, value
  PickledTensor tensor = {};
};

struct StorageType {
  std::string_view storage;  // torch's class
  std::string_view dtype;
};
constexpr StorageType kStorageTypes[] = {{"FloatStorage", "F32"},     {"HalfStorage", "F16"},
                                         {"BFloat16Storage", "BF16"}, {"DoubleStorage", "F64"},
                                         {"LongStorage", "I64"},      {"IntStorage", "I32"},
                                         {"ShortStorage", "I16"},     {"CharStorage", "I8"},
                                         {"ByteStorage", "U8"},       {"BoolStorage", "BOOL"}};

std::string dtype_of(const std::string& storage_class) {
  constexpr std::string_view kModule = "torch ";
  const bool is_torchs = storage_class.starts_with(kModule);
  const auto* const found =
      is_torchs
          ? std::ranges::find(kStorageTypes, std::string_view(storage_class).substr(kModule.size()),
                              &StorageType::storage)
          : std::end(kStorageTypes);
  if (found == std::end(kStorageTypes)) throw Wrong("has tensors of " + storage_class);
  return std::string(found->dtype);
}

class Machine {
 public:
  explicit Machine(std::string_view pickle) : rest_(pickle), size_(pickle.size()) {}

  std::vector<PickledTensor> run() {
    while (!is_stopped_) step(static_cast<unsigned char>(take(1)[0]));
    return tensors_of(pop());
  }

  std::size_t place() const { return size_ - rest_.size(); }

 private:
  std::string_view take(std::size_t count) {
    if (count > rest_.size()) throw Wrong("ends early");
    const auto taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  template <typename T>
  T number() {
    T value{};
    const auto bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), sizeof value);  // little-endian, as the machine
    return value;
  }
  std::string line() {
    const auto end = rest_.find('\n');
    if (end == std::string_view::npos) throw Wrong("ends early");
    const std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  void push(Value value) {
    if (values_.size() >= kValuesMax) throw Wrong("has more values than any model's");
    stack_.push_back(values_.size());
    values_.push_back(std::move(value));
  }
  void push_known(Number number) {
    if (stack_.size() >= kValuesMax) throw Wrong("has more values than any model's");
    stack_.push_back(number);
  }
  Number pop() {
    if (stack_.empty()) throw Wrong("takes a value that is not there");
    const auto number = stack_.back();
    stack_.pop_back();
    return number;
  }
  Number top() const {
    if (stack_.empty()) throw Wrong("takes a value that is not there");
    return stack_.back();
  }
  std::vector<Number> pop_to_mark() {
    auto at = stack_.size();
    while (at > 0 && values_[stack_[at - 1]].kind != Kind::mark) --at;
    if (at == 0) throw Wrong("has no mark where one is needed");
    std::vector<Number> above(stack_.begin() + static_cast<std::ptrdiff_t>(at), stack_.end());
    stack_.resize(at - 1);
    return above;
  }
  Value& of(Number number, Kind kind, const char* what) {
    auto& value = values_[number];
    if (value.kind != kind)
      throw Wrong(std::string("has something else where ") + what + " is needed");
    return value;
  }

  void push_tuple(std::size_t count) {
    std::vector<Number> parts(count);
    for (auto place = count; place-- > 0;) parts[place] = pop();
    push({.kind = Kind::tuple, .parts = std::move(parts)});
  }
  void remember(std::size_t index) {
    if (index >= kValuesMax) throw Wrong("remembers more values than any model has");
    memo_[index] = top();
  }
  void recall(std::size_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) throw Wrong("recalls a value that it has not kept");
    push_known(found->second);
  }
  void add_entries(const std::vector<Number>& entries) {
    if (entries.size() % 2 != 0) throw Wrong("has a key without a value");
    auto& dict = of(top(), Kind::dict, "a dictionary");
    dict.parts.insert(dict.parts.end(), entries.begin(), entries.end());
  }
  void add_items(const std::vector<Number>& items) {
    auto& list = of(top(), Kind::list, "a list");
    list.parts.insert(list.parts.end(), items.begin(), items.end());
  }

  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80: take(1); return;                      // PROTO
      case 0x95: take(8); return;                      // FRAME
      case '.': is_stopped_ = true; return;            // STOP
      case '(': push({.kind = Kind::mark}); return;    // MARK
      case '0': pop(); return;                         // POP
      case 'N': push({}); return;                      // NONE
      case 0x88:                                       // NEWTRUE
      case 0x89: push({.kind = Kind::other}); return;  // NEWFALSE
      case 'G':
        take(8);
        push({.kind = Kind::other});
        return;                                                               // BINFLOAT
      case 'J': push_integer(number<std::int32_t>()); return;                 // BININT
      case 'K': push_integer(number<std::uint8_t>()); return;                 // BININT1
      case 'M': push_integer(number<std::uint16_t>()); return;                // BININT2
      case 0x8A: push_long(number<std::uint8_t>()); return;                   // LONG1
      case 'X': push_text(number<std::uint32_t>()); return;                   // BINUNICODE
      case 0x8C: push_text(number<std::uint8_t>()); return;                   // SHORT_BINUNICODE
      case '}': push({.kind = Kind::dict}); return;                           // EMPTY_DICT
      case ']': push({.kind = Kind::list}); return;                           // EMPTY_LIST
      case ')': push({.kind = Kind::tuple}); return;                          // EMPTY_TUPLE
      case 't': push({.kind = Kind::tuple, .parts = pop_to_mark()}); return;  // TUPLE
      case 0x85: push_tuple(1); return;                                       // TUPLE1
      case 0x86: push_tuple(2); return;                                       // TUPLE2
      case 0x87: push_tuple(3); return;                                       // TUPLE3
      case 'q': remember(number<std::uint8_t>()); return;                     // BINPUT
      case 'r': remember(number<std::uint32_t>()); return;                    // LONG_BINPUT
      case 0x94: remember(memo_.size()); return;                              // MEMOIZE
      case 'h': recall(number<std::uint8_t>()); return;                       // BINGET
      case 'j': recall(number<std::uint32_t>()); return;                      // LONG_BINGET
      case 'c': push_global(); return;                                        // GLOBAL
      case 0x93: push_global_of_stack(); return;                              // STACK_GLOBAL
      case 'Q': push_storage(); return;                                       // BINPERSID
      case 'R': call(); return;                                               // REDUCE
      case 'b':
        pop();
        top();
        return;                                      // BUILD: attributes of no meaning here
      case 'a': add_item(); return;                  // APPEND
      case 'e': add_items(pop_to_mark()); return;    // APPENDS
      case 's': add_entry(); return;                 // SETITEM
      case 'u': add_entries(pop_to_mark()); return;  // SETITEMS
      default: break;
    }
    char text[8];
    std::snprintf(text, sizeof text, "0x%02x", opcode);
    throw Wrong(std::string("has the opcode ") + text + ", which no dictionary of tensors needs");
  }

  void push_integer(std::int64_t value) { push({.kind = Kind::integer, .integer = value}); }
  /// Two's complement, as many bytes as needed.
  void push_long(std::size_t size) {
    if (size > sizeof(std::int64_t)) throw Wrong("has a number of more than 64 bits");
    const auto bytes = take(size);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    const bool is_negative = size > 0 && (static_cast<unsigned char>(bytes[size - 1]) & 0x80) != 0;
    if (is_negative && size < sizeof value) value |= ~std::uint64_t{0} << (8 * size);
    push_integer(std::bit_cast<std::int64_t>(value));
  }
  void push_text(std::size_t size) { push({.kind = Kind::text, .text = std::string(take(size))}); }
  void push_global() {
    const auto module = line(), name = line();
    push({.kind = Kind::global, .text = module + " " + name});
  }
  void push_global_of_stack() {
    const auto name = of(pop(), Kind::text, "a name").text;
    const auto module = of(pop(), Kind::text, "a name").text;
    push({.kind = Kind::global, .text = module + " " + name});
  }
  void add_item() {
    const auto item = pop();
    add_items({item});
  }
  void add_entry() {
    const auto value = pop(), key = pop();
    add_entries({key, value});
  }

  /// ("storage", class, key, place, elements)
  void push_storage() {
    const auto parts = of(pop(), Kind::tuple, "a storage").parts;
    if (parts.size() < 3) throw Wrong("has a storage without a key");
    const auto& type = of(parts[1], Kind::global, "the class of a storage").text;
    const auto key = of(parts[2], Kind::text, "the key of a storage").text;
    push({.kind = Kind::storage, .text = key, .dtype = dtype_of(type)});
  }

  void call() {
    const auto arguments = of(pop(), Kind::tuple, "a list of arguments").parts;
    const auto function = of(pop(), Kind::global, "a function").text;
    if (function == "collections OrderedDict") {
      push({.kind = Kind::dict});
    } else if (function == "torch._utils _rebuild_tensor_v2") {
      push_tensor(arguments);
    } else if (function == "torch._utils _rebuild_parameter" && !arguments.empty()) {
      push_known(arguments[0]);
    } else {
      throw Wrong("calls " + function + ", which no dictionary of tensors needs");
    }
  }

  std::vector<std::int64_t> integers(Number tuple, const char* what) {
    std::vector<std::int64_t> result;
    for (const auto part : of(tuple, Kind::tuple, what).parts) {
      result.push_back(of(part, Kind::integer, what).integer);
      if (result.back() < 0) throw Wrong(std::string("has a negative number in ") + what);
    }
    if (result.size() > kRankMax) throw Wrong("has a tensor of too many dimensions");
    return result;
  }

  /// (storage, offset, shape, stride, ...)
  void push_tensor(const std::vector<Number>& arguments) {
    if (arguments.size() < 4) throw Wrong("has a tensor without a shape");
    const auto& storage = of(arguments[0], Kind::storage, "a storage");
    PickledTensor tensor{.name = "",
                         .dtype = storage.dtype,
                         .storage = storage.text,
                         .offset = of(arguments[1], Kind::integer, "an offset").integer,
                         .shape = integers(arguments[2], "a shape"),
                         .stride = integers(arguments[3], "a stride")};
    if (tensor.offset < 0 || tensor.shape.size() != tensor.stride.size())
      throw Wrong("has a tensor whose shape and stride disagree");
    push({.kind = Kind::tensor, .tensor = std::move(tensor)});
  }

  std::vector<PickledTensor> tensors_of(Number top) {
    const auto* dict = &of(top, Kind::dict, "a dictionary of tensors");
    for (std::size_t i = 0; i + 1 < dict->parts.size(); i += 2) {
      const auto &key = values_[dict->parts[i]], &value = values_[dict->parts[i + 1]];
      if (key.kind == Kind::text && key.text == "state_dict" && value.kind == Kind::dict) {
        dict = &value;
        break;
      }
    }
    std::vector<PickledTensor> tensors;
    for (std::size_t i = 0; i + 1 < dict->parts.size(); i += 2) {
      const auto &key = values_[dict->parts[i]], &value = values_[dict->parts[i + 1]];
      if (key.kind != Kind::text || value.kind != Kind::tensor) continue;
      tensors.push_back(value.tensor);
      tensors.back().name = key.text;
    }
    return tensors;
  }

  std::string_view rest_;
  const std::size_t size_;
  bool is_stopped_ = false;
  std::vector<Value> values_;
  std::vector<Number> stack_;
  std::map<std::size_t, Number> memo_;
};

/// Appends opcodes.
class Writer {
 public:
  Writer& raw(std::string_view bytes) {
    text_ += bytes;
    return *this;
  }
  Writer& global(const char* module, const char* name) {
    return raw("c").raw(module).raw("\n").raw(name).raw("\n");
  }
  Writer& text(std::string_view words) {
    return raw("X").little(static_cast<std::uint32_t>(words.size())).raw(words);
  }
  /// LONG1 of eight bytes.
  Writer& integer(std::int64_t value) { return raw("\x8a\x08").little(value); }
  Writer& tuple(std::span<const std::int64_t> values) {
    raw("(");
    for (const auto value : values) integer(value);
    return raw("t");
  }
  std::string take() { return std::move(text_); }

 private:
  template <typename T>
  Writer& little(T value) {
    return raw({reinterpret_cast<const char*>(&value), sizeof value});
  }
  std::string text_;
};

std::vector<std::int64_t> contiguous_stride(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> stride(shape.size(), 1);
  for (auto i = shape.size(); i-- > 1;) stride[i - 1] = stride[i] * shape[i];
  return stride;
}

}  // namespace

Result<std::vector<PickledTensor>> tensors_in_pickle(std::string_view pickle) {
  Machine machine(pickle);
  try {
    return machine.run();
  } catch (const Wrong& wrong) {
    return Error{.code = Code::invalid,
                 .message = std::string(wrong.what()) + " (byte " +
                            std::to_string(machine.place()) + " of its data.pkl)",
                 .subject = {}};
  }
}

std::optional<std::string> torch_storage(std::string_view dtype) {
  const auto* const found = std::ranges::find(kStorageTypes, dtype, &StorageType::dtype);
  if (found == std::end(kStorageTypes)) return std::nullopt;
  return std::string(found->storage);
}

std::string pickle_of(std::span<const TensorToPickle> tensors) {
  Writer writer;
  writer.raw("\x80\x02");
  writer.global("collections", "OrderedDict").raw(")R(");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, shape, dtype] = tensors[i];
    const auto storage = torch_storage(dtype);
    TJ_CHECK(storage, "a type that torch has: " + dtype);
    writer.text(name).global("torch._utils", "_rebuild_tensor_v2").raw("((");
    writer.text("storage").global("torch", storage->c_str()).text(std::to_string(i)).text("cpu");
    writer.integer(element_count(shape)).raw("tQ").integer(0);
    writer.tuple(shape).tuple(contiguous_stride(shape)).raw("\x89");
    writer.global("collections", "OrderedDict").raw(")RtR");
  }
  return writer.raw("u.").take();
}

}  // namespace tj::trainer
