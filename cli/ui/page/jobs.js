// The list of jobs, newest first: phase, progress, and the loss as a small curve.
import {fetchDocument, repeat} from "./api.js";
import {el, setText, svg} from "./dom.js";
import {duration, number} from "./format.js";

const COLUMNS = [["Job", ""], ["Phase", ""], ["Progress", "progress-cell"], ["Loss", "spark-cell"], ["Workers", "number"],
                 ["Restarts", "number"], ["Age", "number"]];

export function phaseBadge(phase) {
  return el("span", {class: "phase", "data-phase": phase}, phase);
}

/** A bar and its text; without a known total only the text. */
export function progressBar(progress) {
  if (!progress) return el("span", {class: "quiet"}, "–");
  const total = progress.steps > 0 ? `/${progress.steps}` : "";
  const text = el("span", {}, `${progress.step}${total}`);
  if (progress.percent === null) return text;
  const bar = el("progress", {max: "100", value: String(progress.percent), "aria-label": "progress in per cent"});
  return el("span", {class: "progress"}, bar, text);
}

export function sparkline(values) {
  const WIDTH = 120, HEIGHT = 28, EDGE = 2;
  if (values.length < 2) return el("span", {class: "quiet"}, values.length ? number(values[0]) : "–");
  const least = Math.min(...values), greatest = Math.max(...values);
  const points = values.map((value, at) => {
    const x = EDGE + at * (WIDTH - 2 * EDGE) / (values.length - 1);
    const share = greatest > least ? (value - least) / (greatest - least) : 0.5;
    return `${x.toFixed(1)},${(HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE)).toFixed(1)}`;
  });
  const label = `loss from ${number(values[0])} to ${number(values.at(-1))}`;
  const drawing = svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": label},
                      svg("polyline", {points: points.join(" "), class: "spark"}));
  return el("span", {class: "spark-and-value"}, drawing, el("span", {}, number(values.at(-1))));
}

class Row {
  constructor() {
    this.link = el("a", {});
    this.namespace = el("span", {class: "quiet namespace"});
    this.cells = COLUMNS.map(([, kind], at) => el(at === 0 ? "th" : "td", {class: kind, scope: at === 0 ? "row" : null}));
    this.cells[0].append(this.link, this.namespace);
    this.reason = el("span", {class: "quiet reason"});
    this.element = el("tr", {}, ...this.cells);
    this.shown = "";
  }

  update(job, now) {
    const key = JSON.stringify(job);
    setText(this.cells[6], duration(job.created === null ? null : (job.completed ?? now) - job.created));
    if (key === this.shown) return;
    this.shown = key;
    this.link.href = `#/job/${encodeURIComponent(job.namespace)}/${encodeURIComponent(job.name)}`;
    setText(this.link, job.name);
    setText(this.namespace, job.namespace);
    const says = ["Running", "Succeeded"].includes(job.phase) ? "" : job.reason;
    setText(this.reason, says);
    this.cells[1].replaceChildren(phaseBadge(job.phase), this.reason);
    this.cells[2].replaceChildren(progressBar(job.progress));
    this.cells[3].replaceChildren(sparkline(job.spark));
    const done = job.phase === "Succeeded" ? job.succeeded : job.ready;
    setText(this.cells[4], `${done}/${job.workers}`);
    setText(this.cells[5], String(job.restarts));
  }
}

export class JobsView {
  constructor(frame) {
    this.title = "TrainingJobs";
    this.frame = frame;
    this.rows = new Map();
    this.body = el("tbody");
    this.count = el("p", {class: "quiet", role: "status"}, "Loading …");
    const heads = COLUMNS.map(([heading, kind]) => el("th", {scope: "col", class: kind}, heading));
    this.table = el("table", {class: "jobs"}, el("caption", {class: "hidden"}, "Jobs"),
                    el("thead", {}, el("tr", {}, ...heads)), this.body);
    this.table.hidden = true;
    this.element = el("div", {}, el("h1", {}, "Jobs"), this.count, this.table);
    this.close = repeat(() => this.refresh());
  }

  async refresh() {
    try {
      const all = await fetchDocument("/api/jobs");
      this.frame.source(all.source);
      this.frame.problem(all.problem);
      this.show(all);
    } catch (error) {
      this.frame.problem(error.message);
    }
  }

  show({jobs, now}) {
    const seen = new Map();
    for (const job of jobs) {
      const row = this.rows.get(job.uid) ?? new Row();
      row.update(job, now);
      seen.set(job.uid, row);
    }
    this.rows = seen;
    const wanted = [...seen.values()].map((row) => row.element);
    const isSame = wanted.length === this.body.children.length && wanted.every((row, at) => row === this.body.children[at]);
    if (!isSame) this.body.replaceChildren(...wanted);
    this.table.hidden = jobs.length === 0;
    const running = jobs.filter((job) => job.phase === "Running").length;
    setText(this.count, jobs.length === 0 ? "There are no jobs." : `${jobs.length} jobs, ${running} running`);
  }
}
