// Reads a .tok of token_header.h from a disk, and checks what it reads.
#pragma once
#include <vector>

#include "trainer/data/token_header.h"
#include "trainer/process/data_file.h"

namespace tj::trainer {

/// The first `count` bytes, or all if there are fewer.
Result<std::vector<std::uint8_t>> read_head(const DataFile& file, std::int64_t count);

/// Checks the header, the size of the file and the table of checksums, not the tokens.
Result<TokenHeader> read_token_header(const DataFile& file);

/// Checks the tokens of chunk number `chunk` of a file with `payload_bytes` of tokens.
Result<void> check_token_chunk(const DataFile& file, std::int64_t payload_bytes,
                               std::int64_t chunk);

}  // namespace tj::trainer
