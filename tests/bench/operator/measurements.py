"""Where a benchmark's results go: data and plot beside docs/measurements.md, their words into it, between two marks."""
import json
import re


def section(document, begin, end, said):
    """The document with `said` between the marks; without any words it says so."""
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n\n{said or 'Not taken yet.'}\n\n{end}", document)


def write(report, results):
    """`report`: a module with DATA, PLOT, DOCUMENT, plot() and document_with()."""
    report.DATA.parent.mkdir(exist_ok=True)
    report.DATA.write_text(json.dumps(results, indent=1) + "\n")
    report.PLOT.write_text(report.plot(results))
    report.DOCUMENT.write_text(report.document_with(report.DOCUMENT.read_text(), results))
