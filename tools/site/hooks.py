r"""What mkdocs must be told of documents that were written for GitHub's renderer.

The documents are read in a checkout as well, so they stay as they are: here the text of a page is adapted before Python-Markdown sees it.
- The words after a fence's language ("console run") are for the tests of the documents.
- Python-Markdown begins a list or a table only after an empty line, and shows the backslash of a `\|` in code.
- A link to a file outside of docs/ leads to a copy of it in the site, below `files/`.
"""
import pathlib
import posixpath
import re

from mkdocs.structure.files import File, InclusionLevel

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CHANGES = "changes.md"  # CHANGELOG.md, which lies in the root of the checkout
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
BLOCK = re.compile(r"(\||[-*] |\d+\. )")


def outside(page, link):
    """The path from the root of the checkout, of a link that leads out of docs/ to a file; None for any other."""
    if re.match(r"[a-z]+:", link):
        return None
    target = (DOCS / page).parent.joinpath(link).resolve()
    is_ours = target.is_relative_to(ROOT) and not target.is_relative_to(DOCS)
    return target.relative_to(ROOT).as_posix() if is_ours and target.is_file() else None


def mapped(page, link):
    """The same link as a page of the site has it; `page` is relative to docs/."""
    path = outside(page, link)
    if path is None:
        return link
    return posixpath.relpath(CHANGES if path == "CHANGELOG.md" else f"files/{path}", posixpath.dirname(page) or ".")


def with_empty_lines(text):
    """Python-Markdown wants an empty line before a list and before a table."""
    lines = []
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        begins = BLOCK.match(line)
        goes_on = not before or before[0].isspace() or BLOCK.match(before)
        if begins and not goes_on:
            lines.append("")
        if line.startswith("|"):
            line = re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line)
        lines.append(re.sub(r"^( {2})(?=[-*] )", "    ", line))
    return "\n".join(lines)


def adapted(page, text):
    """`text` for Python-Markdown; what stands in fences is left alone."""
    parts, at = [], 0
    for fence in FENCED.finditer(text):
        parts += [prose(page, text[at:fence.start()]), re.sub(r"\A```(\w*).*", r"```\1", fence.group(), count=1)]
        at = fence.end()
    return "".join([*parts, prose(page, text[at:])])


def prose(page, text):
    linked = LINK.sub(lambda link: link[1] + mapped(page, link[2]) + link[3], text)
    return with_empty_lines(linked)


def copied(page, text):
    """The files outside of docs/ that a page links to."""
    paths = {outside(page, link[2]) for link in LINK.finditer(FENCED.sub("", text))}
    return paths - {None, "CHANGELOG.md"}


def on_files(files, config):
    changes = re.sub(r"\]\(docs/", "](", (ROOT / "CHANGELOG.md").read_text())
    files.append(File.generated(config, CHANGES, content=changes))
    wanted = set()
    for file in files.documentation_pages():  # the changes too: they link to documents, and those are in the site
        wanted |= copied(file.src_uri, file.content_string)
    for path in sorted(wanted):
        files.append(File.generated(config, f"files/{path}", abs_src_path=str(ROOT / path), inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown, page, **_):
    is_copy = page.file.src_uri.startswith("files/")
    return markdown if is_copy else adapted(page.file.src_uri, markdown)
