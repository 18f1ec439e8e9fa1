// The wire format of Protocol Buffers, as far as TensorBoard's messages need it: building one does
// not take the library. Source: protobuf.dev/programming-guides/encoding
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tj::trainer {

/// One message; each call appends a field. Little-endian machines only, as everything here.
class ProtobufWriter {
 public:
  ProtobufWriter& integer(int field, std::int64_t value) {
    key(field, 0);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  ProtobufWriter& real64(int field, double value) {
    key(field, 1);
    raw(value);
    return *this;
  }
  ProtobufWriter& real32(int field, float value) {
    key(field, 5);
    raw(value);
    return *this;
  }
  /// A string, bytes, or a message inside of this one.
  ProtobufWriter& bytes(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    text_.append(value);
    return *this;
  }
  ProtobufWriter& message(int field, const ProtobufWriter& inner) {
    return bytes(field, inner.text_);
  }
  /// repeated double, packed
  ProtobufWriter& reals(int field, std::span<const double> values) {
    return bytes(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }

  const std::string& text() const { return text_; }

 private:
  static_assert(std::endian::native == std::endian::little);

  void key(int field, unsigned wire_type) {
    varint(static_cast<std::uint64_t>(field) << 3 | wire_type);
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>(value | 0x80));
    text_.push_back(static_cast<char>(value));
  }
  template <typename T>
  void raw(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::string text_;
};

}  // namespace tj::trainer
