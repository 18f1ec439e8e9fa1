// By what a checkpoint says of which model it is.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tj::trainer {

struct ShapeEntry {
  std::string key;   // in manifest.json
  std::string flag;  // with which a user says it; empty in what was read from a manifest
  std::int64_t value = 0;
  /// Of a choice: what its values are called. A manifest without the key, of before there was a
  /// choice, means the first.
  std::span<const char* const> names = {};
  bool operator==(const ShapeEntry& other) const {
    return key == other.key && value == other.value;
  }
};
using ModelShape = std::vector<ShapeEntry>;

}  // namespace tj::trainer
