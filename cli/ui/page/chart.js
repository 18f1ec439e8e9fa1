// A quantity over time, drawn by uPlot (vendor/, loaded before the modules), with its newest value as text.
import {el, setText} from "./dom.js";
import {colour, onTheme} from "./theme.js";
import {clock} from "./format.js";

const HEIGHT = 200;

/** Columns over steps: what a restart threw away goes, so that steps only rise. */
function bySteps({step, value}) {
  const steps = [], values = [];
  for (let at = 0; at < step.length; ++at) {
    while (steps.length > 0 && steps.at(-1) >= step[at]) {
      steps.pop();
      values.pop();
    }
    steps.push(step[at]);
    values.push(value[at]);
  }
  return [steps, values];
}

/** Times never go back on a page, but clocks of machines may. */
function byTime({time, value}) {
  const order = time.map((_, at) => at).sort((left, right) => time[left] - time[right]);
  return [order.map((at) => time[at]), order.map((at) => value[at])];
}

/** As exact as the distance of the ticks asks for. */
function timeTexts(splits, increment) {
  return splits.map((seconds) => {
    const time = new Date(seconds * 1000);
    if (increment >= 86400) return time.toLocaleDateString("en-CA");
    if (increment >= 60) return time.toLocaleTimeString("en-GB", {hour: "2-digit", minute: "2-digit"});
    const text = time.toLocaleTimeString("en-GB");
    return increment >= 1 ? text : text.slice(6) + (seconds % 1).toFixed(1).slice(1) + " s";
  });
}

export class Chart {
  /** `format` makes a text of a value; `emptyText` stands where nothing is known. */
  constructor(title, format, colourName, emptyText) {
    this.title = title;
    this.format = format;
    this.colourName = colourName;
    this.newest = el("span", {class: "newest"}, "–");
    this.at = el("span", {class: "quiet at"});
    this.plot = null;
    this.room = el("div", {class: "plot", role: "img", "aria-label": title});
    this.empty = el("p", {class: "quiet"}, emptyText);
    this.element = el("section", {class: "chart", "aria-label": title},
                      el("h2", {}, title, " ", this.newest, " ", this.at), this.room, this.empty);
    this.room.hidden = true;
    this.marks = [];
    this.key = "";
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(this.room);
    this.stopTheme = onTheme(() => this.redraw());
  }

  close() {
    this.observer.disconnect();
    this.stopTheme();
    this.plot?.destroy();
  }

  /** `marks`: times at which attempts began. */
  show(columns, axis, marks) {
    const key = `${axis} ${columns.value.length} ${columns.time.at(-1)} ${marks}`;
    if (key === this.key) return;
    this.key = key;
    const isKnown = columns.value.length > 0;
    this.room.hidden = !isKnown;
    this.empty.hidden = isKnown;
    if (!isKnown) return;
    this.data = axis === "step" ? bySteps(columns) : byTime(columns);
    this.marks = axis === "step" ? [] : marks;
    setText(this.newest, this.format(columns.value.at(-1)));
    const least = Math.min(...columns.value), greatest = Math.max(...columns.value);
    this.room.setAttribute("aria-label", `${this.title} over ${axis}, ${columns.value.length} points: ` +
      `from ${this.format(columns.value[0])} to ${this.format(columns.value.at(-1))}, ` +
      `least ${this.format(least)}, greatest ${this.format(greatest)}`);
    this.room.dataset.points = columns.value.length;
    if (this.plot && this.axis === axis) return this.plot.setData(this.data);
    this.axis = axis;
    this.redraw();
  }

  redraw() {
    if (!this.data) return;
    this.plot?.destroy();
    this.plot = new uPlot(this.options(), this.data, this.room);
  }

  options() {
    const grid = {stroke: colour("--line"), width: 1};
    const axis = {stroke: colour("--quiet"), grid, ticks: grid, font: "12px system-ui, sans-serif"};
    const times = this.axis === "time" ? {space: 75, values: (_, splits, index, space, increment) => timeTexts(splits, increment)} : {};
    return {
      width: Math.max(200, this.room.clientWidth),
      height: HEIGHT,
      legend: {show: false},
      cursor: {y: false, drag: {x: true, y: false}},
      scales: {x: {time: this.axis === "time"}},
      axes: [{...axis, ...times}, {...axis, size: 62, values: (_, splits) => splits.map(this.format)}],
      series: [{}, {stroke: colour(this.colourName), width: 2, points: {show: this.data[0].length < 30, size: 5}}],
      hooks: {setCursor: [(plot) => this.tell(plot)], drawAxes: [(plot) => this.drawMarks(plot)]},
    };
  }

  /** What is under the pointer. */
  tell(plot) {
    const at = plot.cursor.idx;
    const isOver = at !== null && at !== undefined && plot.cursor.left >= 0;
    const where = isOver && (this.axis === "time" ? clock(this.data[0][at]) : `step ${this.data[0][at]}`);
    setText(this.at, isOver ? `${this.format(this.data[1][at])} at ${where}` : "");
  }

  drawMarks(plot) {
    const context = plot.ctx;
    context.save();
    context.strokeStyle = colour("--failed");
    context.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const mark of this.marks) {
      const x = plot.valToPos(mark, "x", true);
      if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) continue;
      context.beginPath();
      context.moveTo(x, plot.bbox.top);
      context.lineTo(x, plot.bbox.top + plot.bbox.height);
      context.stroke();
    }
    context.restore();
  }

  fit() {
    if (!this.plot) return;
    const width = Math.max(200, this.room.clientWidth);
    if (width !== this.plot.width) this.plot.setSize({width, height: HEIGHT});
  }
}
