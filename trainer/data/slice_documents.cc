#include "trainer/data/slice_documents.h"

#include "trainer/data/data_file.h"

namespace tj::trainer {

Result<void> for_each_document_in(const InputFile& input, const Slice& slice,
                                  const std::string& field,
                                  const std::function<bool(const Document&)>& take) {
  const auto file = DataFile::open(input.path);
  if (!file) return file.error();
  if (file->bytes() != input.bytes) {
    return Error{.code = Code::invalid,
                 .message = "has " + std::to_string(file->bytes()) + " bytes and had " +
                            std::to_string(input.bytes) + " at the start; it must not change",
                 .subject = input.path.string()};
  }
  const auto begin = next_cut(*file, input.format, slice.begin);
  if (!begin) return begin.error();
  const bool ends_file = slice.end == input.bytes;
  const auto end =
      ends_file ? Result<std::int64_t>(input.bytes) : next_cut(*file, input.format, slice.end);
  if (!end) return end.error();
  const auto text = file->read(*begin, *end - *begin);
  if (!text) return text.error();
  const RecordSlice records{.format = input.format,
                            .bytes = *text,
                            .offset = *begin,
                            .ends_file = ends_file,
                            .field = field};
  return for_each_document(records, input.path.string(), take);
}

}  // namespace tj::trainer
