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

/// The leaf of the column `field`, which has numbers or lists (of lists) of them. Throws where it
/// is missing or something else, and names the columns that there are.
int number_leaf(const parquet::SchemaDescriptor& schema, std::string_view field);
/// Is there a column of that name?
bool has_column(const parquet::SchemaDescriptor& schema, std::string_view field);

}  // namespace tj::trainer
