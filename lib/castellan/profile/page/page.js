// What the page can do more where there is JavaScript. Everything else is in the HTML.
(() => {
  "use strict";
  const root = document.documentElement;
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const stored = {
    get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { if (value === null) localStorage.removeItem(key); else localStorage.setItem(key, value); } catch { /* storage is off */ } }
  };

  // --- Themes. speedscope keeps its own choice under a key of its own, and reads it when it starts.
  const themes = document.querySelector("[data-themes]");
  const tellSpeedscope = (theme) => stored.set("speedscope-color-scheme", theme === "auto" ? null : theme.toUpperCase());
  const choose = (theme) => {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    stored.set("castellan-theme", theme === "auto" ? null : theme);
    tellSpeedscope(theme);
    all("[data-flame]").forEach((frame) => frame.contentWindow?.location.reload());
  };
  if (themes) {
    themes.hidden = false;
    const now = root.dataset.theme || "auto";
    themes.querySelector(`[value="${now}"]`).checked = true;
    tellSpeedscope(now);
    themes.addEventListener("change", (event) => choose(event.target.value));
  }

  // --- Copying. navigator.clipboard is there only where the page came over https or from this machine.
  const toast = document.querySelector("[data-toast]");
  let fading;
  const say = (text) => {
    toast.textContent = text;
    toast.classList.add("shown");
    clearTimeout(fading);
    fading = setTimeout(() => toast.classList.remove("shown"), 2500);
  };
  const copyBySelection = (text) => {
    const field = document.createElement("textarea");
    field.value = text;
    field.setAttribute("readonly", "");
    field.className = "unseen";
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  };
  const copy = async (text) => {
    let done = false;
    try { await navigator.clipboard.writeText(text); done = true; } catch { done = copyBySelection(text); }
    say(done ? "Copied" : "This browser does not let the page copy: select the text");
  };
  const share = async (address) => {
    const response = await fetch(address);
    if (response.ok) copy(new URL(await response.text(), location.href).href); else say(`The server answers ${response.status}`);
  };
  all("[data-copy], [data-copy-link], [data-share]").forEach((button) => { button.hidden = false; });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-copy-link], [data-share]");
    if (!button) return;
    if (button.matches("[data-share]")) share(button.dataset.share);
    else copy(button.matches("[data-copy-link]") ? location.href.split("#")[0] : button.parentElement.querySelector("[data-copied]").textContent);
  });

  // --- Times, as the reader's clock has them; the day is left out of today's.
  const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
  const localTimes = (inside) => all("time[datetime]", inside).forEach((time) => {
    const at = new Date(time.dateTime);
    time.title = time.textContent;
    time.textContent = day.format(at) === day.format(new Date()) ? clock.format(at) : `${day.format(at)}, ${clock.format(at)}`;
  });
  localTimes(document);
  all("option[data-at]").forEach((option) => { option.text = option.text.replace(/^\S+ UTC/, clock.format(new Date(option.dataset.at))); });

  // --- A link to a group of queries opens it.
  const openTarget = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const details = target && target.querySelector("details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", openTarget);
  openTarget();

  // --- The list: filtered without leaving the page, and asked for again every two seconds with the validator of what is
  // shown, so that an answer without news is a 304. (A stream of events would hold a thread of the server for each reader.)
  const list = document.querySelector("[data-latest]");
  if (!list) return;

  const EVERY_MS = 2000;
  const filter = document.querySelector("[data-filter]");
  const live = document.querySelector("[data-live]");
  const liveText = document.querySelector("[data-live-text]");
  const liveButton = document.querySelector("[data-live-button]");
  let validator = null;
  let timer = null;
  let paused = false;
  let asked = 0;

  const query = () => {
    const chosen = new URLSearchParams([...new FormData(filter)].filter(([, value]) => value !== ""));
    return chosen.size ? `?${chosen}` : "";
  };

  // What the reader has chosen and where the focus is stays as it was.
  const show = (html) => {
    const picked = ["a", "b"].map((side) => list.querySelector(`input[name="${side}"]:checked`)).filter((one) => one && one.dataset.touched);
    const focused = list.contains(document.activeElement) ? document.activeElement : null;
    const place = focused && [focused.closest("tr")?.dataset.id, all("a, input, button", focused.closest("tr") || list).indexOf(focused)];
    const left = list.querySelector(".scroll")?.scrollLeft || 0;
    list.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
    localTimes(list);
    picked.forEach(({ name, value }) => {
      const again = list.querySelector(`input[name="${name}"][value="${CSS.escape(value)}"]`);
      if (again) { again.checked = true; again.dataset.touched = "yes"; }
    });
    if (list.querySelector(".scroll")) list.querySelector(".scroll").scrollLeft = left;
    if (!place) return;
    const row = place[0] ? list.querySelector(`tr[data-id="${CSS.escape(place[0])}"]`) : list;
    if (row) all("a, input, button", row)[place[1]]?.focus({ preventScroll: true });
  };

  // What has come in can be chosen.
  const offer = () => ["endpoint", "status"].forEach((name) => {
    const select = filter.elements[name];
    const known = new Set([...select.options].map((option) => option.value));
    const come = new Set(all("tr[data-id]", list).map((row) => row.dataset[name]));
    [...come].filter((value) => value && !known.has(value)).sort().forEach((value) => select.add(new Option(value, value)));
  });

  const state = (text) => { liveText.textContent = text; };

  const ask = async () => {
    const number = (asked += 1);
    try {
      const response = await fetch(`${list.dataset.latest}${query()}`, { headers: validator ? { "If-None-Match": validator } : {} });
      if (number !== asked) return;
      if (response.status === 200) { validator = response.headers.get("ETag"); show(await response.text()); offer(); }
      state(response.ok || response.status === 304 ? "live" : `the server answers ${response.status}`);
    } catch {
      if (number === asked) state("the server does not answer");
    }
  };

  const next = () => {
    clearTimeout(timer);
    if (!paused && !document.hidden) timer = setTimeout(async () => { await ask(); next(); }, EVERY_MS);
  };

  const pause = (now) => {
    paused = now;
    liveButton.setAttribute("aria-pressed", String(paused));
    liveButton.textContent = paused ? "Resume" : "Pause";
    live.classList.toggle("paused", paused);
    state(paused ? "paused" : "live");
    next();
  };

  const narrow = async () => {
    validator = null;
    history.replaceState(null, "", `${location.pathname}${query()}`);
    await ask();
    next();
  };

  live.hidden = false;
  // A click and no change: who chooses what was proposed means it.
  list.addEventListener("click", (event) => { if (event.target.matches("input[type=radio]")) event.target.dataset.touched = "yes"; });
  liveButton.addEventListener("click", () => pause(!paused));
  filter.addEventListener("change", narrow);
  filter.addEventListener("submit", (event) => { event.preventDefault(); narrow(); });
  // A tab that nobody sees asks nothing, and at once when somebody looks at it again.
  document.addEventListener("visibilitychange", async () => { if (!document.hidden && !paused) await ask(); next(); });
  next();
})();
