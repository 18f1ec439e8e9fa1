// By what a checkpoint says of which model it is.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tj::trainer {

struct ShapeEntry {
  std::string key;   // in manifest.json
  std::string flag;  // with which a user says it; empty in what was read from a manifest
  std::int64_t value = 0;
  bool operator==(const ShapeEntry& other) const {
    return key == other.key && value == other.value;
  }
};
using ModelShape = std::vector<ShapeEntry>;

}  // namespace tj::trainer
