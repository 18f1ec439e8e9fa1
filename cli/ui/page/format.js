// Numbers, times and lines as people read them.

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return (value / 1e6).toPrecision(3) + " M";
  if (size >= 1e4) return Math.round(value).toLocaleString("en");
  if (size !== 0 && size < 1e-3) return value.toExponential(2);
  return String(Number(value.toPrecision(digits)));
}

export function percent(share) {
  return share === null || share === undefined ? "–" : (100 * share).toFixed(1) + " %";
}

/** "1 d 2 h", "3 min 4 s": the two largest units. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  const parts = [[Math.floor(whole / 86400), "d"], [Math.floor(whole / 3600) % 24, "h"],
                 [Math.floor(whole / 60) % 60, "min"], [whole % 60, "s"]];
  const first = parts.findIndex(([count]) => count > 0);
  if (first < 0) return "0 s";
  return parts.slice(first, first + 2).filter(([count], at) => at === 0 || count > 0)
    .map(([count, unit]) => `${count} ${unit}`).join(" ");
}

/** The time of day, and the day where it isn't today. */
export function clock(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const time = new Date(seconds * 1000);
  const isToday = time.toDateString() === new Date().toDateString();
  const day = isToday ? "" : time.toLocaleDateString("en-CA") + " ";
  return day + time.toLocaleTimeString("en-GB");
}

/** A line of a log without escape sequences; of a progress bar that is drawn over itself, the last state. */
export function plainLine(line) {
  const last = line.replace(/\r+$/, "").split("\r").at(-1);
  // eslint-disable-next-line no-control-regex
  return last.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(\u0007|\u001b\\)?/g, "")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd");
}

/** What a first failure says, as one sentence. */
export function failureText(failure) {
  if (!failure) return "";
  const where = failure.node ? ` on node ${failure.node}` : "";
  const code = failure.exit_code === null ? "" : `, exit code ${failure.exit_code}`;
  const why = failure.message || failure.reason;
  return `rank ${failure.rank}${where} failed first: ${failure.cause}${code}${why ? ": " + why : ""}`;
}
