// The documents of one slice of a file of text, as prepare_plan.h has cut it.
#pragma once
#include <functional>
#include <string>

#include "contract/result.h"
#include "trainer/data/documents.h"
#include "trainer/data/prepare_plan.h"

namespace tj::trainer {

/// Calls `take` with each document of `slice`, which is of `input`, until it returns false; `field`
/// is that of JSON lines. Holds the text of the slice meanwhile. Fails when the file has another
/// size than it had, and as for_each_document().
Result<void> for_each_document_in(const InputFile& input, const Slice& slice,
                                  const std::string& field,
                                  const std::function<bool(const Document&)>& take);

}  // namespace tj::trainer
