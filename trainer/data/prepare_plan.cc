#include "trainer/data/prepare_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/data/file_walk.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

/// FNV-1a (Fowler, Noll, Vo), then splitmix64's finaliser: FNV alone leaves the high bits alike.
std::uint64_t hash_of(std::string_view name, std::int64_t offset) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](std::uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3U; };
  for (const char byte : name) add(static_cast<std::uint8_t>(byte));
  for (int shift = 0; shift < 64; shift += 8) add(static_cast<std::uint8_t>(offset >> shift));
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31);
}

/// The format that --format asks for; --format wiki leaves it to the file which of the two it is.
Result<TextFormat> format_of(const DataFile& file, const std::string& wanted) {
  const auto detected = detect_format(file);
  if (!detected || wanted.empty() || to_string(*detected) == wanted) return detected;
  if (wanted == "folder") return TextFormat::plain;
  if (wanted == "jsonl") return TextFormat::jsonl;
  if (wanted == "parquet") return TextFormat::parquet;
  return Error{.code = Code::invalid,
               .message =
                   "at byte 0: begins neither with <doc nor with <mediawiki, as --format "
                   "wiki asks for",
               .subject = file.path().string()};
}

Result<void> add_input(const fs::path& path, std::string name, const std::string& format,
                       std::vector<InputFile>& inputs) {
  const auto file = DataFile::open(path);
  if (!file) return file.error();
  if (file->bytes() == 0) return {};
  const auto found = format_of(*file, format);
  if (!found) return found.error();
  inputs.push_back(
      {.path = path, .name = std::move(name), .bytes = file->bytes(), .format = *found});
  const auto& first = inputs.front();
  if (to_string(first.format) == std::string_view(to_string(*found))) return {};
  return Error{.code = Code::invalid,
               .message = std::string("looks like ") + to_string(*found) + ", and " +
                          first.path.string() + " like " + to_string(first.format) +
                          "; --format says which it is",
               .subject = path.string()};
}

Result<void> add_root(const fs::path& root, const std::string& format,
                      std::vector<InputFile>& inputs) {
  std::error_code failure;
  const auto status = fs::status(root, failure);
  if (!fs::exists(status)) {
    return Error{.code = Code::not_found,
                 .message = "does not exist; it must be a file or a folder of text",
                 .subject = "--input " + root.string()};
  }
  if (!fs::is_directory(status)) return add_input(root, root.filename().string(), format, inputs);
  const auto files = files_below(root);
  if (!files) return files.error();
  for (const auto& path : *files) {
    const auto added = add_input(path, path.lexically_relative(root).string(), format, inputs);
    if (!added) return added;
  }
  return {};
}

}  // namespace

Result<std::vector<InputFile>> find_inputs(std::span<const std::string> roots,
                                           const std::string& format) {
  std::vector<InputFile> inputs;
  for (const auto& root : roots) {
    if (const auto added = add_root(root, format, inputs); !added) return added.error();
  }
  if (!inputs.empty()) return inputs;
  return Error{.code = Code::invalid,
               .message = "holds no file with anything in it; it must hold text",
               .subject = "--input " + (roots.empty() ? "" : roots.front())};
}

std::vector<Part> plan_parts(std::span<const InputFile> files, std::int64_t part_bytes) {
  std::vector<Part> parts;
  std::int64_t joined_bytes = part_bytes;  // of the last part, if more files may join it
  for (std::size_t file = 0; file < files.size(); ++file) {
    const std::int64_t bytes = files[file].bytes;
    if (joined_bytes + bytes <= part_bytes) {
      parts.back().push_back({.file = file, .begin = 0, .end = bytes});
      joined_bytes += bytes;
      continue;
    }
    for (std::int64_t begin = 0; begin < bytes; begin += part_bytes)
      parts.push_back({{.file = file, .begin = begin, .end = std::min(bytes, begin + part_bytes)}});
    joined_bytes = bytes < part_bytes ? bytes : part_bytes;
  }
  return parts;
}

std::string inputs_sha256(std::span<const InputFile> files) {
  Sha256 hash;
  for (const auto& file : files) {
    const std::string rows = file.rows > 0 ? '\0' + std::to_string(file.rows) : "";
    const std::string line = file.name + '\0' + std::to_string(file.bytes) + rows + '\n';
    hash.update(std::as_bytes(std::span(line)));
  }
  return std::move(hash).hex();
}

bool is_held_out(std::string_view name, std::int64_t offset, double fraction) {
  return static_cast<double>(hash_of(name, offset)) < std::ldexp(fraction, 64);
}

}  // namespace tj::trainer
