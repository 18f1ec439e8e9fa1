// Elements of the page. All text of jobs, logs and nodes goes in as text: nothing here parses HTML.

/** el("td", {class: "number"}, "12", otherElement): attributes, then children; null children are left out. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Changes the text only where it differs, so that selections and screen readers are left in peace. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A section with its heading; `parts` come after it. */
export function section(title, ...parts) {
  const id = "s-" + title.toLowerCase().replace(/[^a-z]+/g, "-");
  return el("section", {"aria-labelledby": id}, el("h2", {id}, title), ...parts);
}

/** A table whose rows are made anew when what they show has changed. `columns`: [heading, class]. */
export class Table {
  constructor(label, columns, whenEmpty) {
    this.columns = columns;
    this.body = el("tbody");
    const heads = columns.map(([heading, kind]) => el("th", {scope: "col", class: kind}, heading));
    this.table = el("table", {}, el("caption", {class: "hidden"}, label),
                    el("thead", {}, el("tr", {}, ...heads)), this.body);
    this.empty = el("p", {class: "quiet"}, whenEmpty);
    this.element = el("div", {class: "wide", tabindex: "0", role: "group", "aria-label": label}, this.table, this.empty);
    this.shown = null;
  }

  /** `rows`: lists of cells, each a text or an element. */
  show(rows, key) {
    if (key === this.shown) return;
    this.shown = key;
    this.table.hidden = rows.length === 0;
    this.empty.hidden = rows.length > 0;
    this.body.replaceChildren(...rows.map((cells) => el("tr", {}, ...cells.map(
      (cell, at) => el(at === 0 ? "th" : "td", {class: this.columns[at][1], scope: at === 0 ? "row" : null}, cell)))));
  }
}
