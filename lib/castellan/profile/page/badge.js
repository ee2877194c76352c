// A badge for pages of HTML: how long the page and what it fetched took, and links to their profiles.
//
//   <script src="/castellan/badge.js" defer></script>
//
// It reads the Server-Timing that Castellan sends to whoever is authorised; nobody else sees a badge. Needs script-src of
// the own origin, and nothing inline. Keep it off with localStorage["castellan-badge"] = "off".
(() => {
  "use strict";
  const base = new URL(".", document.currentScript.src).pathname.replace(/\/$/, "");
  try { if (localStorage.getItem("castellan-badge") === "off") return; } catch { /* storage is off: shown */ }

  const MOST = 20;
  const seen = [];
  const timing = (entry, name) => entry.serverTiming.find((one) => one.name === name);
  const ours = (entry) => entry.serverTiming?.length && timing(entry, "total") && timing(entry, "db");
  const ms = (number) => `${number >= 100 ? Math.round(number) : number.toFixed(1)} ms`;

  const styles = new CSSStyleSheet();
  styles.replaceSync(`
    :host { all: initial; position: fixed; inset: auto 12px 12px auto; z-index: 2147483000; font: 13px/1.45 system-ui, sans-serif; color-scheme: light dark; }
    details { background: light-dark(#fff, #1c2126); color: light-dark(#1b1f24, #e9ecef); border: 1px solid light-dark(#b9c0c8, #4a535d); border-radius: 8px; box-shadow: 0 2px 12px #0003; max-width: min(440px, 90vw); }
    summary { cursor: pointer; padding: 5px 10px; font-weight: 600; list-style: none; }
    summary:focus-visible, a:focus-visible { outline: 3px solid light-dark(#0b5fff, #8ab4ff); outline-offset: 2px; border-radius: 4px; }
    .repeated { color: light-dark(#a8261c, #ff9c90); }
    ol { margin: 0; padding: 0 10px 8px; list-style: none; max-height: 50vh; overflow: auto; }
    li { display: flex; gap: 10px; padding: 3px 0; border-top: 1px solid light-dark(#e2e5e9, #343b43); }
    a { color: light-dark(#0b5c4f, #7fd6bd); flex: 1; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    span { font-variant-numeric: tabular-nums; white-space: nowrap; }
  `);
  let parts = null;

  const build = () => {
    const host = document.createElement("castellan-badge");
    const shadow = host.attachShadow({ mode: "open" });
    shadow.adoptedStyleSheets = [styles];
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    const list = document.createElement("ol");
    details.append(summary, list);
    shadow.append(details);
    document.body.append(host);
    details.addEventListener("toggle", () => { if (details.open) draw(); });
    return { details, summary, list };
  };

  const repeated = (entry) => /repeated/.test(timing(entry, "db").description);

  // The header names the profile.
  const line = (entry) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const { pathname, search } = new URL(entry.name);
    const id = timing(entry, "profile")?.description;
    link.href = id ? `${base}/requests/${encodeURIComponent(id)}` : base;
    link.textContent = `${pathname}${search}`;
    const figures = document.createElement("span");
    figures.textContent = `${ms(timing(entry, "total").duration)}, ${timing(entry, "db").description}`;
    if (repeated(entry)) figures.className = "repeated";
    item.append(link, figures);
    return item;
  };

  const draw = () => parts.list.replaceChildren(...seen.slice(-MOST).reverse().map(line));

  const show = () => {
    parts ||= build();
    const slowest = seen.reduce((one, other) => timing(one, "total").duration >= timing(other, "total").duration ? one : other);
    parts.summary.textContent = `${ms(timing(slowest, "total").duration)} · ${timing(slowest, "db").description}${seen.length > 1 ? ` · ${seen.length} requests` : ""}`;
    parts.summary.className = seen.some(repeated) ? "repeated" : "";
    if (parts.details.open) draw();
  };

  // A page is reported twice, from the buffer and when it has loaded, also in one list.
  const isNew = (entry) => !seen.some((one) => one.name === entry.name && one.startTime === entry.startTime);

  const take = (entries) => {
    const before = seen.length;
    entries.filter((entry) => ours(entry) && !new URL(entry.name).pathname.startsWith(`${base}/`))
      .forEach((entry) => { if (isNew(entry)) seen.push(entry); });
    if (seen.length > before) show();
  };

  ["navigation", "resource"].forEach((type) => new PerformanceObserver((list) => take(list.getEntries())).observe({ type, buffered: true }));
})();
