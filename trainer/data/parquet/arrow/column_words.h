// The columns of a Parquet file in words, and which of them holds text.
#pragma once
#include <string>
#include <string_view>

namespace parquet {
class SchemaDescriptor;
}  // namespace parquet

namespace tj::trainer {

/// The leaf of the column `field`. Throws where it is missing, nested or no text, and names the
/// columns that there are.
int text_leaf(const parquet::SchemaDescriptor& schema, std::string_view field);

}  // namespace tj::trainer
