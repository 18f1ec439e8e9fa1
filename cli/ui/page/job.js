// One job: how it stands, its curves, its ranks over time, what happened, and the log of a rank.
import {fetchDocument, jobPath, repeat} from "./api.js";
import {Chart} from "./chart.js";
import {el, section, setText, Table} from "./dom.js";
import {clock, duration, failureText, number, percent} from "./format.js";
import {Grid} from "./grid.js";
import {phaseBadge, progressBar} from "./jobs.js";
import {Log} from "./log.js";

const RANKS_SHOWN = 64;

/** Pairs of a word and a value. */
class Facts {
  constructor() {
    this.values = new Map();
    this.element = el("dl", {class: "facts"});
  }

  set(name, value) {
    let shown = this.values.get(name);
    if (!shown) {
      shown = el("dd");
      this.values.set(name, shown);
      this.element.append(el("div", {}, el("dt", {}, name), shown));
    }
    if (typeof value === "string") setText(shown, value);
    else shown.replaceChildren(value);
  }
}

export class JobView {
  constructor(frame, namespace, name) {
    this.frame = frame;
    this.title = `${name} – TrainingJobs`;
    this.path = jobPath(namespace, name);
    this.from = 0;
    this.makeParts(namespace, name);
    const stop = repeat(() => this.refresh());
    this.close = () => {
      stop();
      this.log.close();
      for (const chart of this.charts) chart.close();
    };
  }

  makeParts(namespace, name) {
    this.phase = el("span");
    this.message = el("p", {class: "message", role: "status"});
    this.facts = new Facts();
    this.log = new Log(namespace, name);
    this.grid = new Grid((rank, attempt) => this.log.choose(rank, attempt), (from) => this.turnTo(from));
    const nothing = "Nothing is known so far: it comes from the job's status while this page runs, and of local runs from the trainer's files.";
    this.charts = [new Chart("Loss", (value) => number(value), "--curve-1", nothing),
                   new Chart("Tokens per second", (value) => number(value, 3), "--curve-2", nothing),
                   new Chart("Goodput", percent, "--curve-3",
                             "Known where the trainer's event files can be read, that is of local runs.")];
    this.attempts = new Table("Attempts", [["Attempt", "number"], ["Began", ""], ["Took", ""], ["How it ended", "text"]], "There is none.");
    this.events = new Table("Events", [["Time", ""], ["Reason", ""], ["Message", "text"], ["Object", ""]], "There are none.");
    this.nodes = new Table("Nodes", [["Node", ""], ["Workers", "number"], ["Running", "number"], ["To blame", "number"], ["Excluded", ""]],
                           "No worker has a node.");
    this.troubled = new Table("Ranks in trouble", [["Rank", "number"], ["Node", ""], ["Reason", ""], ["Message", "text"]], "There are none.");
    this.troubledSection = section("Ranks in trouble", this.troubled.element);
    this.checkpoints = new Table("Checkpoints", [["Step", "number"], ["Path", "text"], ["Seen", ""]], "None is known.");
    this.element = el("div", {},
      el("nav", {"aria-label": "Where you are"}, el("a", {href: "#/"}, "Jobs"), " / ", namespace),
      el("h1", {}, name, " ", this.phase), this.message, this.facts.element, this.troubledSection,
      this.axisChoice(), el("div", {class: "charts"}, ...this.charts.map((chart) => chart.element)),
      section("Ranks over time", this.grid.element), section("Log", this.log.element),
      el("div", {class: "tables"}, section("Attempts", this.attempts.element), section("Events", this.events.element),
         section("Nodes", this.nodes.element), section("Checkpoints", this.checkpoints.element)));
  }

  axisChoice() {
    this.axis = "time";
    const choice = (value) => {
      const input = el("input", {type: "radio", name: "axis", value, checked: value === this.axis,
                                 onchange: () => { this.axis = value; this.drawCharts(); }});
      return el("label", {}, input, value);
    };
    return el("fieldset", {class: "axis-choice"}, el("legend", {}, "Curves over"), choice("time"), choice("step"));
  }

  async refresh() {
    try {
      const query = `?from=${this.from}&count=${RANKS_SHOWN}`;
      const [one, series] = await Promise.all([fetchDocument(this.path + query), fetchDocument(this.path + "/series")]);
      this.frame.source(one.source);
      this.frame.problem(one.problem);
      this.series = series;
      this.document = one;
      this.show();
    } catch (error) {
      this.frame.problem(error.message);
    }
  }

  turnTo(from) {
    this.from = Math.max(0, from);
    this.refresh();
  }

  show() {
    const {job, troubled, attempts, ranks, nodes, events, checkpoints} = this.document;
    if (this.phase.textContent !== job.phase) this.phase.replaceChildren(phaseBadge(job.phase));
    setText(this.message, job.message ? `${job.reason}: ${job.message}` : job.reason);
    this.showFacts(job, this.document.now);
    this.grid.show(this.document);
    this.drawCharts();
    this.log.offer(attempts.map((attempt) => attempt.attempt), ranks.total);
    const rows = [...attempts].reverse().map((attempt) => this.attemptRow(attempt, job));
    this.attempts.show(rows, JSON.stringify(rows));
    this.events.show(events.map((event) => [clock(event.time), event.reason,
      event.count > 1 ? `${event.message} (${event.count} times)` : event.message, event.object]), JSON.stringify(events));
    this.nodes.show(nodes.map((node) => [node.node, String(node.workers), String(node.running), String(node.failures),
      node.excluded ? "yes" : ""]), JSON.stringify(nodes));
    this.checkpoints.show(checkpoints.map((saved) => [String(saved.step), saved.path, clock(saved.time)]), JSON.stringify(checkpoints));
    this.troubledSection.hidden = troubled.length === 0;
    this.troubled.show(troubled.map((rank) => [String(rank.rank), rank.node, rank.reason, rank.message]), JSON.stringify(troubled));
  }

  attemptRow(attempt, job) {
    const isCurrent = attempt.attempt === job.attempt;
    const end = attempt.end ?? (isCurrent ? job.completed ?? this.document.now : null);
    const took = attempt.start === null || end === null ? "–" : duration(end - attempt.start);
    const how = failureText(attempt.first_failure) || (isCurrent ? job.phase : "");
    return [String(attempt.attempt), clock(attempt.start), took, how];
  }

  showFacts(job, now) {
    const progress = job.progress;
    const isDone = job.completed !== null;
    this.facts.set("Progress", progressBar(progress));
    this.facts.set("Left", progress && !isDone ? duration(progress.eta_seconds) : "–");
    this.facts.set("Workers ready", `${job.ready}/${job.workers}`);
    this.facts.set("Attempt", String(job.attempt));
    this.facts.set("Restarts", `${job.restarts} (limit ${job.restarts_max})`);
    this.facts.set("MFU", percent(progress?.mfu));
    this.facts.set("Started", clock(job.started));
    this.facts.set(isDone ? "Took" : "Runs for", job.started === null ? "–" : duration((job.completed ?? now) - job.started));
  }

  drawCharts() {
    if (!this.series) return;
    const marks = this.document.attempts.filter((attempt) => attempt.attempt > 0 && attempt.start !== null)
      .map((attempt) => attempt.start);
    const columns = [this.series.loss, this.series.rate, this.series.goodput];
    this.charts.forEach((chart, at) => chart.show(columns[at], this.axis, marks));
  }
}
