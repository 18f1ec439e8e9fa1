// The log of one rank as it is written. It follows its end, unless the reader has scrolled up.
import {el, setText} from "./dom.js";
import {plainLine} from "./format.js";
import {jobPath} from "./api.js";

const LINES_MAX = 5000;
const NEAR_END_PX = 40;

export class Log {
  constructor(namespace, name) {
    this.path = jobPath(namespace, name) + "/log";
    this.rank = el("input", {type: "number", min: "0", value: "0", id: "log-rank", onchange: () => this.open()});
    this.attempt = el("select", {id: "log-attempt", onchange: () => this.open()});
    this.filter = el("input", {type: "search", id: "log-filter", placeholder: "only lines with …", oninput: () => this.refilter()});
    this.follow = el("input", {type: "checkbox", id: "log-follow", checked: true, onchange: () => this.scroll()});
    this.state = el("span", {class: "quiet", role: "status"});
    this.lines = el("div", {class: "lines", role: "log", "aria-live": "off", "aria-label": "log", tabindex: "0",
                            onscroll: () => this.onScroll()});
    this.element = el("div", {class: "log"},
      el("p", {class: "tools"},
        el("label", {for: "log-rank"}, "Rank"), this.rank, el("label", {for: "log-attempt"}, "Attempt"), this.attempt,
        el("label", {for: "log-filter", class: "hidden"}, "Only lines with"), this.filter,
        el("span", {}, this.follow, el("label", {for: "log-follow"}, "follow")), this.state),
      this.lines);
    this.source = null;
    this.shown = "";
    this.latest = -1;
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  /** Attempts that there are; the newest is shown, unless an earlier one has been chosen. */
  offer(attempts, ranks) {
    const latest = attempts.at(-1);
    this.rank.max = String(ranks - 1);
    const wanted = attempts.join();
    if (this.offered !== wanted) {
      const followsNewest = this.latest < 0 || Number(this.attempt.value) === this.latest;
      const chosen = followsNewest ? latest : Number(this.attempt.value);
      this.attempt.replaceChildren(...attempts.map((attempt) => el("option", {value: String(attempt)}, String(attempt))));
      this.attempt.value = String(chosen);
      this.offered = wanted;
      this.latest = latest;
    }
    this.open();
  }

  choose(rank, attempt) {
    this.rank.value = String(rank);
    this.attempt.value = String(attempt);
    this.open();
    this.element.scrollIntoView({block: "nearest"});
    this.lines.focus({preventScroll: true});
  }

  open() {
    const wanted = `rank=${Number(this.rank.value) || 0}&attempt=${Number(this.attempt.value) || 0}`;
    if (wanted === this.shown) return;
    this.shown = wanted;
    this.close();
    this.lines.replaceChildren();
    setText(this.state, "waiting for lines …");
    const source = new EventSource(`${this.path}?${wanted}`);
    this.source = source;
    source.onopen = () => setText(this.state, "live");
    source.onmessage = (event) => this.add(JSON.parse(event.data));
    source.addEventListener("end", (event) => {
      source.close();
      setText(this.state, JSON.parse(event.data).why);
    });
    source.onerror = () => setText(this.state, source.readyState === EventSource.CLOSED ? "there is no log" : "connecting again …");
  }

  matches(text) {
    return text.toLowerCase().includes(this.filter.value.toLowerCase());
  }

  add({lines, lost}) {
    setText(this.state, "live");
    const isAtEnd = this.follow.checked;
    const added = lines.map((line) => {
      const text = plainLine(line);
      return el("div", {hidden: !this.matches(text)}, text);
    });
    if (lost > 0) added.unshift(el("div", {class: "quiet"}, `… ${lost} lines came too fast to be shown …`));
    this.lines.append(...added);
    while (this.lines.childElementCount > LINES_MAX) this.lines.firstElementChild.remove();
    if (isAtEnd) this.scroll();
  }

  refilter() {
    for (const line of this.lines.children) line.hidden = !this.matches(line.textContent);
    this.scroll();
  }

  scroll() {
    if (this.follow.checked) this.lines.scrollTop = this.lines.scrollHeight;
  }

  onScroll() {
    const left = this.lines.scrollHeight - this.lines.scrollTop - this.lines.clientHeight;
    this.follow.checked = left < NEAR_END_PX;
  }
}
