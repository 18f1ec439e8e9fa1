// Ranks x time: a row for each rank, a bar for each of its pods. Who failed first in an attempt has a mark.
import {el, setText} from "./dom.js";
import {clock, duration} from "./format.js";

const TICKS_PX = 150;

/** What a bar shows in one word; it is a class name as well. */
function kindOf(life, isFirst) {
  if (isFirst) return "first";
  if (life.state === "Running" || life.state === "Succeeded") return life.state.toLowerCase();
  if (life.state === "Failed") return "failed";
  return life.state === "Gone" ? "gone" : "pending";
}

function textOf(life, isFirst, end) {
  const code = life.exit_code === null ? "" : `, exit code ${life.exit_code}`;
  const reason = life.reason && life.reason !== "Completed" ? `, ${life.reason}` : "";
  const node = life.node ? ` on node ${life.node}` : "";
  return `attempt ${life.attempt}${node}: ${isFirst ? "failed first" : life.state}${code}${reason}, from ` +
    `${clock(life.created)}, ${duration(end - life.created)}`;
}

export class Grid {
  /** `openLog(rank, attempt)` is called when a rank is chosen. */
  constructor(openLog, changePage) {
    this.openLog = openLog;
    this.changePage = changePage;
    this.axis = el("div", {class: "axis", "aria-hidden": "true"});
    this.body = el("tbody");
    this.note = el("p", {class: "quiet"});
    this.pages = el("p", {class: "pages"});
    this.element = el("div", {},
      this.note,
      el("table", {class: "grid"}, el("caption", {class: "hidden"}, "Ranks over time"),
        el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "Rank"), el("th", {scope: "col", class: "node"}, "Node"),
                           el("th", {scope: "col", class: "time"}, el("span", {class: "hidden"}, "Pods over time"), this.axis))),
        this.body),
      this.pages, this.legend());
    this.rows = new Map();
    this.from = 0;
  }

  legend() {
    const kinds = [["pending", "waits"], ["running", "runs"], ["succeeded", "succeeded"], ["first", "failed first"],
                   ["failed", "failed"], ["gone", "was deleted, or has ended"]];
    return el("p", {class: "legend"}, ...kinds.map(
      ([kind, text]) => el("span", {}, el("span", {class: `bar ${kind}`, "aria-hidden": "true"}), text)));
  }

  show({ranks, attempts, job, now}) {
    const first = new Map(attempts.filter((attempt) => attempt.first_failure)
      .map((attempt) => [attempt.attempt, attempt.first_failure.rank]));
    const lives = ranks.rows.flatMap((row) => row.lives);
    const starts = lives.map((life) => life.created).filter((time) => time !== null);
    const begin = Math.min(...starts, ...attempts.map((attempt) => attempt.start ?? Infinity), job.started ?? Infinity);
    const end = Math.max(job.completed ?? now, ...lives.map((life) => life.ended ?? 0));
    this.span = {begin: Number.isFinite(begin) ? begin : now - 1, end, length: Math.max(1, end - begin) || 1};
    const restarts = attempts.length > 1 ? `, ${attempts.length} attempts` : "";
    setText(this.note, `${ranks.total} ranks${restarts}; ${duration(this.span.end - this.span.begin)} are shown.`);
    this.showAxis(attempts);
    this.showRows(ranks.rows, first, now);
    this.showPages(ranks);
  }

  place(element, from, to) {
    const left = 100 * (from - this.span.begin) / this.span.length;
    const right = 100 * (to - this.span.begin) / this.span.length;
    element.style.left = `${Math.max(0, left).toFixed(2)}%`;
    element.style.width = `${Math.max(0.3, right - Math.max(0, left)).toFixed(2)}%`;
  }

  showAxis(attempts) {
    const count = Math.max(1, Math.floor(this.axis.clientWidth / TICKS_PX));
    const ticks = [];
    for (let at = 0; at < count; ++at) {
      const time = this.span.begin + at * this.span.length / count;
      const tick = el("span", {class: "tick"}, clock(time));
      this.place(tick, time, time);
      ticks.push(tick);
    }
    for (const attempt of attempts) {
      if (attempt.attempt === 0 || attempt.start === null) continue;
      const mark = el("span", {class: "restart"}, `${attempt.attempt}`);
      this.place(mark, attempt.start, attempt.start);
      ticks.push(mark);
    }
    this.axis.replaceChildren(...ticks);
  }

  showRows(rows, first, now) {
    const seen = new Map();
    for (const {rank, lives} of rows) {
      const row = this.rows.get(rank) ?? this.newRow(rank);
      row.attempt = lives.at(-1)?.attempt ?? 0;
      setText(row.node, lives.at(-1)?.node ?? "");
      const bars = lives.map((life, at) => this.bar(life, first.get(life.attempt) === rank, lives[at + 1]?.created ?? now));
      row.time.replaceChildren(el("div", {class: "bars"}, ...bars));
      seen.set(rank, row);
    }
    if ([...seen.keys()].join() !== [...this.rows.keys()].join())
      this.body.replaceChildren(...[...seen.values()].map((row) => row.element));
    this.rows = seen;
  }

  newRow(rank) {
    const row = {attempt: 0, node: el("td", {class: "node"}), time: el("td", {class: "time"})};
    const button = el("button", {type: "button", title: `show the log of rank ${rank}`,
                                 onclick: () => this.openLog(rank, row.attempt)}, String(rank));
    row.element = el("tr", {}, el("th", {scope: "row"}, button), row.node, row.time);
    return row;
  }

  /** It ends at `latest` at most: a pod is often seen to go when its successor has begun. */
  bar(life, isFirst, latest) {
    const end = Math.max(life.created ?? 0, Math.min(life.ended ?? latest, latest));
    const kind = kindOf(life, isFirst);
    const text = textOf(life, isFirst, end);
    const bar = el("span", {class: `bar ${kind}`, title: text, "data-attempt": life.attempt},
                   el("span", {class: "hidden"}, text + ". "));
    this.place(bar, life.created ?? this.span.begin, end);
    return bar;
  }

  showPages({total, from, rows}) {
    if (rows.length >= total) return this.pages.replaceChildren();
    const go = (to, text) => el("button", {type: "button", disabled: to < 0 || to >= total, onclick: () => this.changePage(to)}, text);
    const key = `${from} ${rows.length} ${total}`;
    if (this.pages.dataset.key === key) return;
    this.pages.dataset.key = key;
    this.pages.replaceChildren(go(from - rows.length, "Earlier ranks"), ` ${from} to ${from + rows.length - 1} of ${total} `,
                               go(from + rows.length, "Later ranks"));
  }
}
