// What `trainer prepare` will do, cut into numbered parts: a function of the names and sizes of the
// input files alone, so that workers, interruptions and their order change nothing in the result.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"
#include "trainer/data/documents.h"

namespace tj::trainer {

/// Text of one part; a larger file is cut, smaller ones are joined. The default, and the most.
inline constexpr std::int64_t kPartBytes = 8 << 20;
inline constexpr std::int64_t kPartBytesMax = 1 << 30;
inline constexpr std::size_t kPartsMax = 60'000;  // each becomes a file that training opens

struct InputFile {
  std::filesystem::path path;
  std::string name;        // below its --input; the same on every machine
  std::int64_t bytes = 0;  // of Parquet: of its text, once it was measured
  TextFormat format = TextFormat::plain;
  std::int64_t rows = 0;  // of Parquet, once it was measured
  bool operator==(const InputFile&) const = default;
};

/// The documents of `file` whose cut lies in [begin, end): next_cut() makes it exact, of Parquet
/// row_at().
struct Slice {
  std::size_t file = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const Slice&) const = default;
};
using Part = std::vector<Slice>;

/// The files at and below `roots`, in their order; empty ones are left out. `format` is folder,
/// jsonl, wiki, parquet or empty: then the files say it, and must agree.
Result<std::vector<InputFile>> find_inputs(std::span<const std::string> roots,
                                           const std::string& format);

std::vector<Part> plan_parts(std::span<const InputFile> files, std::int64_t part_bytes);

/// Of the list of names and sizes, in hexadecimal.
std::string inputs_sha256(std::span<const InputFile> files);

/// Whether the document at `offset` of the file `name` belongs to the held-out part, of which there
/// is about `fraction`. By name and place alone, so that it is the same in each run.
bool is_held_out(std::string_view name, std::int64_t offset, double fraction);

}  // namespace tj::trainer
