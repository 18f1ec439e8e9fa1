#include "trainer/data/parquet/arrow/column_words.h"

#include <parquet/schema.h>
#include <parquet/types.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace tj::trainer {
namespace {

/// All of it must fit into a PluginText.
constexpr int kColumnsNamedMax = 10;
constexpr std::size_t kNameBytesMax = 24;

/// For a line on a terminal: names are the file's.
std::string shown(std::string_view name) {
  std::string text(name.substr(0, kNameBytesMax));
  for (char& letter : text)
    if (std::iscntrl(static_cast<unsigned char>(letter)) != 0) letter = '?';
  return name.size() > kNameBytesMax ? text + "..." : text;
}

bool is_text(const parquet::schema::Node& node) {
  if (!node.is_primitive() || node.is_repeated()) return false;
  const auto& primitive = static_cast<const parquet::schema::PrimitiveNode&>(node);
  const auto& type = node.logical_type();
  return primitive.physical_type() == parquet::Type::BYTE_ARRAY && type &&
         (type->is_string() || type->is_JSON() || type->is_enum());
}

/// "text", "list", "INT64": what the column is.
std::string kind_of(const parquet::schema::Node& node) {
  if (is_text(node)) return "text";
  const auto& type = node.logical_type();
  if (node.is_repeated() || (type && type->is_list())) return "list";
  if (type && type->is_map()) return "map";
  if (node.is_group()) return "struct";
  if (type && !type->is_none() && type->is_valid())
    return shown(type->ToString());  // "Timestamp(isAdjustedToUTC=..."
  return parquet::TypeToString(
      static_cast<const parquet::schema::PrimitiveNode&>(node).physical_type());
}

std::string columns_of(const parquet::schema::GroupNode& root) {
  std::string words;
  const int named = std::min(root.field_count(), kColumnsNamedMax);
  for (int i = 0; i < named; ++i) {
    const auto& node = *root.field(i);
    words += (i > 0 ? ", " : "") + shown(node.name()) + " (" + kind_of(node) + ")";
  }
  if (root.field_count() > named)
    words += " and " + std::to_string(root.field_count() - named) + " more";
  return words.empty() ? "none" : words;
}

bool is_number(const parquet::ColumnDescriptor& column) {
  switch (column.physical_type()) {
    case parquet::Type::BOOLEAN:
    case parquet::Type::INT32:
    case parquet::Type::INT64:
    case parquet::Type::FLOAT:
    case parquet::Type::DOUBLE: return true;
    default: return false;
  }
}

/// Down through lists, each of which has one member; -1 where there are several.
int only_leaf(const parquet::SchemaDescriptor& schema, const parquet::schema::Node& node) {
  if (node.is_primitive()) return schema.ColumnIndex(node);
  const auto& group = static_cast<const parquet::schema::GroupNode&>(node);
  return group.field_count() == 1 ? only_leaf(schema, *group.field(0)) : -1;
}

}  // namespace

int text_leaf(const parquet::SchemaDescriptor& schema, std::string_view field) {
  const auto& root = *schema.group_node();
  const std::string rest = "; its columns are " + columns_of(root) + ": --field names one of text";
  for (int i = 0; i < root.field_count(); ++i) {
    const auto& node = *root.field(i);
    if (node.name() != field) continue;
    const int leaf = is_text(node) ? schema.ColumnIndex(node) : -1;
    if (leaf >= 0) return leaf;
    throw std::runtime_error("its column \"" + shown(field) + "\" is no text (" + kind_of(node) +
                             ")" + rest);
  }
  throw std::runtime_error("has no column \"" + shown(field) + "\"" + rest);
}

bool has_column(const parquet::SchemaDescriptor& schema, std::string_view field) {
  const auto& root = *schema.group_node();
  for (int i = 0; i < root.field_count(); ++i)
    if (root.field(i)->name() == field) return true;
  return false;
}

int number_leaf(const parquet::SchemaDescriptor& schema, std::string_view field) {
  const auto& root = *schema.group_node();
  const std::string rest = "; its columns are " + columns_of(root);
  for (int i = 0; i < root.field_count(); ++i) {
    if (root.field(i)->name() != field) continue;
    const int leaf = only_leaf(schema, *root.field(i));
    if (leaf >= 0 && is_number(*schema.Column(leaf))) return leaf;
    throw std::runtime_error("its column \"" + shown(field) + "\" has no numbers (" +
                             kind_of(*root.field(i)) + ")" + rest);
  }
  throw std::runtime_error("has no column \"" + shown(field) + "\"" + rest);
}

}  // namespace tj::trainer
