#!/usr/bin/python3
"""Makes a corpus of real text, Chinese and English, out of Debian's packages of documentation.

    corpus.py FOLDER     writes FOLDER/zh/*.txt and FOLDER/en/*.txt, a document each

The packages are downloaded by apt-get (130 MB) and unpacked beside the corpus; nothing is installed. Markup is taken out,
and a paragraph that another document has said already (menus, licences) is left out.
"""

import gzip
import html.parser
import pathlib
import re
import subprocess
import sys

PACKAGES = [
    "debian-edu-doc-zh-cn", "debian-faq-zh-cn", "debian-handbook", "debian-reference-zh-cn", "debian-reference-zh-tw",
    "gimp-help-zh-cn", "installation-guide-amd64", "libreoffice-help-en-us", "libreoffice-help-zh-cn",
    "libreoffice-help-zh-tw", "linux-doc-6.1", "linuxcnc-doc-zh-cn", "maint-guide-zh-cn", "manpages-zh"]
BLOCKS = {"p", "div", "li", "h1", "h2", "h3", "h4", "h5", "td", "th", "dt", "dd", "pre", "br", "title", "tr"}
SILENT = {"script", "style", "head"}
PARAGRAPH_MIN = 12  # characters: what is shorter is a button or a number
LANGUAGES = re.compile(r"(?:^|[/._-])(zh[_-]?(?:cn|tw|hans)|en[_-]us|linux-doc-6.1)(?=[/._-]|$)", re.IGNORECASE)


class Paragraphs(html.parser.HTMLParser):
    """The text of a page, a block on each line."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts, self.silent = [], 0

    def handle_starttag(self, tag, attrs):
        self.silent += tag in SILENT
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag):
        self.silent -= tag in SILENT and self.silent > 0
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data):
        if not self.silent:
            self.parts.append(data)


def of_page(path):
    page = Paragraphs()
    page.feed(path.read_text("utf-8", errors="replace"))
    return "".join(page.parts)


def of_manual(path):
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        return re.sub(r"(?m)^[.'].{0,3}\\\".*$|^[.'][A-Z]{1,3} ?|\\f.|\\-", " ", file.read())


def language_of(path):
    found = LANGUAGES.findall(str(path))
    if not found:
        return None
    return "zh" if found[-1].lower().startswith("zh") else "en"


def documents(unpacked):
    for path in sorted(unpacked.rglob("*")):
        language = language_of(path.relative_to(unpacked))
        if language is None or not path.is_file() or path.is_symlink():
            continue
        if path.suffix == ".html":
            yield language, path, of_page(path)
        elif path.suffix == ".gz" and "/man/" in str(path):
            yield language, path, of_manual(path)


def main():
    folder = pathlib.Path(sys.argv[1])
    unpacked = folder / "packages"
    unpacked.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", "-q", *PACKAGES], cwd=unpacked, check=True, stdout=subprocess.DEVNULL)
    for package in sorted(unpacked.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(package), str(unpacked / "files")], check=True)
    seen, sizes = set(), {"zh": 0, "en": 0}
    for number, (language, path, text) in enumerate(documents(unpacked / "files")):
        lines = []
        for line in text.splitlines():
            line = " ".join(line.split())
            if len(line) >= PARAGRAPH_MIN and line not in seen:
                seen.add(line)
                lines.append(line)
        if not lines:
            continue
        (folder / language).mkdir(exist_ok=True)
        written = "\n".join(lines) + "\n"
        (folder / language / f"{number:05d}-{path.stem[:40]}.txt").write_text(written)
        sizes[language] += len(written.encode())
    print(", ".join(f"{language}: {size / 1e6:.1f} MB" for language, size in sizes.items()))


if __name__ == "__main__":
    main()
