#include "trainer/data/documents.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {

struct Told {
  std::vector<std::string> documents;  // "OFFSET:TEXT", with a "+" behind what goes on
  std::string error;
};

Told documents_of(TextFormat format, const std::string& bytes, const std::string& field = "text") {
  Told told;
  const RecordSlice slice{.format = format, .bytes = bytes, .ends_file = true, .field = field};
  const auto done = for_each_document(slice, "f", [&](const Document& document) {
    told.documents.push_back(std::to_string(document.offset) + ":" + std::string(document.text) +
                             (document.ends ? "" : "+"));
    return true;
  });
  if (!done) told.error = describe(done.error());
  return told;
}

DataFile open(const TemporaryFolder& folder, const std::string& name, const std::string& text) {
  auto file = DataFile::open(folder.write(name, text));
  EXPECT_TRUE(file);
  return std::move(*file);
}

std::vector<std::int64_t> cuts_of(const DataFile& file, TextFormat format) {
  std::vector<std::int64_t> cuts;
  for (std::int64_t at = 0; at <= file.bytes(); ++at) {
    const auto cut = next_cut(file, format, at);
    EXPECT_TRUE(cut);
    EXPECT_GE(*cut, at);
    if (cuts.empty() || cuts.back() != *cut) cuts.push_back(*cut);
  }
  return cuts;
}

TEST(Documents, json_lines) {
  const std::string lines =
      "{\"text\": \"one\"}\n\n{\"id\": 1, \"text\": \"t\\nw\\u00f6\"}\r\n"
      "{\"text\": \"\"}\n{\"text\": \"last\"}";
  EXPECT_EQ(documents_of(TextFormat::jsonl, lines).documents,
            (std::vector<std::string>{"0:one", "17:t\nw\xc3\xb6", "63:last"}));
  EXPECT_EQ(documents_of(TextFormat::jsonl, "{\"body\": \"b\"}", "body").documents,
            (std::vector<std::string>{"0:b"}));
}

TEST(Documents, a_bad_json_line_is_named_with_its_offset) {
  EXPECT_EQ(documents_of(TextFormat::jsonl, "{\"text\": \"a\"}\n{\"body\": \"b\"}").error,
            "f: at byte 14: the line has no text under \"text\"; --field names the member that "
            "holds it");
  EXPECT_EQ(documents_of(TextFormat::jsonl, "{\"text\": 7}").error.substr(0, 35),
            "f: at byte 0: the line has no text ");
  EXPECT_EQ(documents_of(TextFormat::jsonl, "[]\n").error.substr(0, 35),
            "f: at byte 0: the line has no text ");
  EXPECT_EQ(
      documents_of(TextFormat::jsonl, "{\"text\": \"a\"}\n{\"text\": \"b").error.substr(0, 37),
      "f: at byte 14: the line is no JSON: [");
}

TEST(Documents, what_wiki_extractor_writes) {
  const std::string text =
      "<doc id=\"1\" url=\"u\" title=\"A\">\nA\n\na &lt; b &amp; c\n</doc>\n"
      "<doc id=\"2\" title=\"B\">\n\n</doc>\n<doc id=\"3\" title=\"C\">\nC <doc> c\n\n</doc>\n";
  EXPECT_EQ(documents_of(TextFormat::wiki_extractor, text).documents,
            (std::vector<std::string>{"0:A\n\na < b & c", "89:C <doc> c"}));
  EXPECT_EQ(documents_of(TextFormat::wiki_extractor, text.substr(0, 40)).error,
            "f: at byte 0: the <doc> that begins here has no </doc> (cut short?)");
}

TEST(Documents, articles_of_a_mediawiki_dump) {
  const std::string text =
      "<mediawiki>\n<siteinfo/>\n<page>\n<title>A</title><ns>0</ns>\n<revision>"
      "<text xml:space=\"preserve\">'''A''' &quot;x&quot; &#x4eba;&#33; &unknown;</text>"
      "</revision>\n</page>\n"
      "<page><ns>0</ns><redirect title=\"A\" /><revision><text>#REDIRECT</text></revision></page>\n"
      "<page><ns>1</ns><revision><text>talk</text></revision></page>\n"
      "<page><ns>0</ns><revision><text bytes=\"0\" /></revision></page>\n"
      "<page><ns>0</ns><revision><text>B</text></revision></page>\n</mediawiki>\n";
  const auto told = documents_of(TextFormat::mediawiki, text);
  EXPECT_EQ(told.error, "");
  ASSERT_EQ(told.documents.size(), 2U);
  EXPECT_EQ(told.documents[0], "24:'''A''' \"x\" \xe4\xba\xba! &unknown;");
  EXPECT_EQ(told.documents[1].substr(told.documents[1].find(':')), ":B");
  EXPECT_EQ(documents_of(TextFormat::mediawiki, "<page><ns>0</ns>").error,
            "f: at byte 0: the <page> that begins here has no </page> (cut short?)");
}

TEST(Documents, records_are_cut_where_they_begin) {
  const TemporaryFolder folder;
  EXPECT_EQ(cuts_of(open(folder, "a", "{1}\n{22}\n{3"), TextFormat::jsonl),
            (std::vector<std::int64_t>{0, 4, 9, 11}));
  EXPECT_EQ(cuts_of(open(folder, "b", "<doc a>\nx <doc \n</doc>\n<doc b>\n</doc>\n"),
                    TextFormat::wiki_extractor),
            (std::vector<std::int64_t>{0, 23, 38}));
  EXPECT_EQ(cuts_of(open(folder, "c", "<m>\n  <page>\n</page>\n  <page></page></m>"),
                    TextFormat::mediawiki),
            (std::vector<std::int64_t>{0, 6, 23, 40}));
}

TEST(Documents, plain_text_is_cut_where_no_word_is) {
  const TemporaryFolder folder;
  // Not after white space, which runs on across the end of the line.
  EXPECT_EQ(cuts_of(open(folder, "a", "ab\ncd \n\nef\n"), TextFormat::plain),
            (std::vector<std::int64_t>{0, 2, 10, 11}));
  // After a Chinese full stop (U+3002), not after a wide space (U+3000).
  EXPECT_EQ(cuts_of(open(folder, "b", "\xe3\x80\x82\n\xe3\x80\x80\nx"), TextFormat::plain),
            (std::vector<std::int64_t>{0, 3, 9}));
}

TEST(Documents, a_line_without_end_is_cut_between_characters) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += "\xe4\xba\xba";
  const auto file = open(folder, "a", text + text);
  for (const std::int64_t at : {1, 2, 3, 65'536}) {
    const auto cut = next_cut(file, TextFormat::plain, at);
    ASSERT_TRUE(cut);
    EXPECT_EQ(*cut % 3, 0);
    EXPECT_NEAR(static_cast<double>(*cut), static_cast<double>(at + (1 << 20)), 3);
  }
}

TEST(Documents, cuts_far_from_the_place_asked_for_are_found) {
  const TemporaryFolder folder;
  const std::string line = "{" + std::string(300'000, 'x') + "}\n";
  const auto file = open(folder, "a", line + line + line);
  const auto bytes = static_cast<std::int64_t>(line.size());
  for (const std::int64_t at : {std::int64_t{1}, bytes - 1, bytes})
    EXPECT_EQ(*next_cut(file, TextFormat::jsonl, at), bytes);
  EXPECT_EQ(*next_cut(file, TextFormat::jsonl, bytes + 1), 2 * bytes);
}

TEST(Documents, the_format_shows_in_the_first_bytes) {
  const TemporaryFolder folder;
  const auto found = [&](const std::string& name, const std::string& text) {
    const auto format = detect_format(open(folder, name, text));
    return format ? std::string(to_string(*format)) : describe(format.error());
  };
  EXPECT_EQ(found("a.txt", "{not json}"), "folder");
  EXPECT_EQ(found("a.jsonl", "x"), "jsonl");
  EXPECT_EQ(found("a.json", "{\"text\": 1}"), "jsonl");
  EXPECT_EQ(found("wiki_00", "<doc id=\"1\">\n"), "wiki");
  EXPECT_EQ(found("dump.xml", "\n<mediawiki xmlns=\"x\">"), "wiki");
  const auto gzip = found("b.jsonl", "\x1f\x8b\x08");
  EXPECT_EQ(gzip.substr(gzip.rfind('/') + 1), "b.jsonl: is compressed (gzip); unpack it first");
}

}  // namespace
}  // namespace tj::trainer
