#include "trainer/data/prepare_options.h"

#include <CLI/CLI.hpp>

namespace tj::trainer {

void add_text_options(CLI::App& app, std::string& format, std::string& field) {
  app.add_option("--format", format,
                 "folder (a file is a document), jsonl, wiki or parquet (the files say it)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"folder", "jsonl", "wiki", "parquet"}));
  app.add_option("--field", field,
                 "member of a JSON line, or column of Parquet, that holds the text (" + field + ")")
      ->type_name("NAME");
}

}  // namespace tj::trainer
