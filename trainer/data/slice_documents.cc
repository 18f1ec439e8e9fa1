#include "trainer/data/slice_documents.h"

#include "trainer/data/parquet/parquet_plugin.h"
#include "trainer/data/parquet/parquet_text.h"
#include "trainer/data/plain_pieces.h"
#include "trainer/process/data_file.h"

namespace tj::trainer {

std::optional<Failure> SliceReader::measure(std::vector<InputFile>& files,
                                            const std::filesystem::path& plugin) {
  if (files.front().format != TextFormat::parquet) return std::nullopt;
  const auto loaded = load_parquet_plugin(plugin.empty() ? default_parquet_plugin() : plugin);
  if (!loaded) return bad_config(loaded.error());
  parquet_ = *loaded;
  const auto measured = measure_parquet(*parquet_, field_, files);
  return measured ? std::nullopt : std::optional(bad_data(measured.error()));
}

Result<void> SliceReader::read(const SliceCall& call,
                               const std::function<bool(const Document&)>& take) const {
  if (call.file.format != TextFormat::parquet) return read_text(call, take);
  return for_each_row(
      *parquet_,
      {.file = call.file, .slice = call.slice, .field = field_, .is_stopping = call.is_stopping},
      take);
}

Result<void> SliceReader::read_text(const SliceCall& call,
                                    const std::function<bool(const Document&)>& take) const {
  const InputFile& input = call.file;
  const auto file = DataFile::open(input.path);
  if (!file) return file.error();
  if (file->bytes() != input.bytes) {
    return Error{.code = Code::invalid,
                 .message = "has " + std::to_string(file->bytes()) + " bytes and had " +
                            std::to_string(input.bytes) + " at the start; it must not change",
                 .subject = input.path.string()};
  }
  const auto begin = next_cut(*file, input.format, call.slice.begin);
  if (!begin) return begin.error();
  const bool ends_file = call.slice.end == input.bytes;
  const auto end =
      ends_file ? Result<std::int64_t>(input.bytes) : next_cut(*file, input.format, call.slice.end);
  if (!end) return end.error();
  const auto text = file->read(*begin, *end - *begin);
  if (!text) return text.error();
  if (call.is_held_out && input.format == TextFormat::plain) {
    return for_each_piece(
        {.file = *file, .begin = call.slice.begin, .bytes = *text, .offset = *begin},
        call.is_held_out, take);
  }
  const RecordSlice records{.format = input.format,
                            .bytes = *text,
                            .offset = *begin,
                            .ends_file = ends_file,
                            .field = field_};
  return for_each_document(records, input.path.string(), take);
}

}  // namespace tj::trainer
