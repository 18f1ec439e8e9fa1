// Text of a person's terminal: columns, bars, and lengths of time as
// kubectl says them. Pure.
#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace tj {

/// A plain line (plain_text.h), cut to `columns` characters; the last is then "…".
std::string cut_line(std::string_view text, std::size_t columns);

using Row = std::vector<std::string>;
/// Columns padded to their widest cell, two spaces between them; an empty cell is "-". The last
/// column is as long as it is. Cells are made plain.
std::string table_text(const std::vector<Row>& rows);

/// "45s", "3m54s", "5h", "2d3h": apimachinery's duration.HumanDuration. A negative time is "0s".
std::string duration_text(std::chrono::seconds time);

/// "[#######-------------]": `done` of `total`; empty without a total.
std::string progress_bar(long long done, long long total, std::size_t width);

/// Four significant digits at most: "3.123", "12340", "1.5e-05".
std::string number_text(double number);

}  // namespace tj
