// Draws the waterfall of each story: a bar for what a step reaches, a second one for the difference to the step that it is compared with.
(() => {
  "use strict";
  const NARROW = 620;
  const stories = JSON.parse(document.getElementById("charts").textContent);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const narrow = (chart) => chart.width < NARROW;

  const hatched = (stroke) => {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const brush = tile.getContext("2d");
    brush.strokeStyle = stroke;
    brush.lineWidth = 1.5;
    brush.beginPath();
    [-4, 0, 4, 8].forEach((x) => { brush.moveTo(x, 8); brush.lineTo(x + 8, 0); });
    brush.stroke();
    return brush.createPattern(tile, "repeat");
  };

  const kind = (story, step) => {
    if (step.verdict === "wrong") return "wrong";
    if (step.before === null || step.value === step.before) return "first";
    if (story.less) return step.value < step.before ? "less" : "worse";
    return step.value > step.before ? "more" : "lost";
  };

  const tint = (story, step) => ({
    wrong: "wrong", first: "now", less: "better-pale", worse: "worse", more: "better", lost: "worse-pale"
  })[kind(story, step)];

  // The whole powers of ten around all values.
  const bounds = (story) => {
    const values = story.steps.flatMap((step) => [step.value, step.told]).filter((value) => value > 0);
    return [10 ** Math.floor(Math.log10(Math.min(...values) * 0.8)), 10 ** Math.ceil(Math.log10(Math.max(...values) * 1.02))];
  };

  const wrapped = (text, width) => text.split(" ").reduce((lines, word) => {
    const last = lines[lines.length - 1];
    if (last !== undefined && (last + " " + word).length <= width) lines[lines.length - 1] = last + " " + word;
    else lines.push(word);
    return lines;
  }, []);

  // More lines would overlap those of the next bar; the table has the whole text.
  const shortened = (lines) => lines.length > 2 ? [lines[0], lines[1] + " …"] : lines;

  const font = (size, weight) => `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif`;

  // What Chart.js does not draw: the figure of each bar at the right, the account's own figure, and on a phone the step above its bar.
  const labels = (story) => ({
    id: "labels",
    afterDatasetsDraw(chart) {
      const brush = chart.ctx;
      const { left } = chart.chartArea;
      const scale = chart.scales.x;
      brush.save();
      chart.getDatasetMeta(0).data.forEach((bar, index) => {
        const step = story.steps[index];
        const wrong = step.verdict === "wrong";
        if (step.told > 0) diamond(brush, scale.getPixelForValue(step.told), bar.y);
        brush.font = font(13, 600);
        brush.textBaseline = "middle";
        brush.textAlign = "right";
        brush.fillStyle = color(wrong ? "wrong" : "ink");
        brush.fillText(step.text, chart.width - 2, bar.y);
        if (!narrow(chart)) return;

        brush.font = font(13, 500);
        brush.textAlign = "left";
        brush.textBaseline = "bottom";
        brush.fillText(fitted(brush, step.step, chart.width - left), left, bar.y - bar.height / 2 - 3);
      });
      brush.restore();
    }
  });

  const fitted = (brush, text, width) => {
    if (brush.measureText(text).width <= width) return text;
    let short = text;
    while (short.length > 1 && brush.measureText(short + "…").width > width) short = short.slice(0, -1);
    return short + "…";
  };

  const diamond = (brush, x, y) => {
    brush.beginPath();
    [[0, -6], [6, 0], [0, 6], [-6, 0]].forEach(([dx, dy]) => brush.lineTo(x + dx, y + dy));
    brush.closePath();
    brush.fillStyle = color("card");
    brush.strokeStyle = color("ink");
    brush.lineWidth = 2;
    brush.fill();
    brush.stroke();
  };

  const datasets = (story, least) => [
    {
      label: "now", grouped: false, barPercentage: 1, categoryPercentage: 1, barThickness: 18, borderRadius: 3, borderSkipped: false,
      data: story.steps.map((step) => [least, step.verdict === "wrong" || step.before === null ? step.value : Math.min(step.value, step.before)]),
      backgroundColor: story.steps.map((step) => step.verdict === "wrong" ? hatched(color("wrong")) : color("now")),
      borderColor: color("wrong"), borderWidth: story.steps.map((step) => step.verdict === "wrong" ? 1 : 0)
    },
    {
      label: "difference", grouped: false, barThickness: 18, borderRadius: 3, borderSkipped: false,
      data: story.steps.map((step) => step.verdict === "wrong" || step.before === null
        ? null : [Math.min(step.value, step.before), Math.max(step.value, step.before)]),
      backgroundColor: story.steps.map((step) => color(tint(story, step)))
    }
  ];

  const options = (story, [least, most], width) => {
    const small = width < NARROW;
    return {
      indexAxis: "y", animation: false, responsive: true, maintainAspectRatio: false, events: [],
      layout: { padding: { right: small ? 88 : 110, top: small ? 18 : 4 } },
      plugins: { legend: { display: false }, tooltip: { enabled: false } },
      scales: {
        x: {
          type: "logarithmic", min: least, max: most, border: { display: false }, grid: { color: color("line") },
          ticks: {
            color: color("soft"), font: { size: 12 }, maxRotation: 0,
            callback: (value) => Number.isInteger(Math.log10(value)) || Math.abs(Math.log10(value) % 1) < 1e-9 ? value.toLocaleString("en") : null
          },
          title: { display: true, text: story.unit, color: color("soft"), font: { size: 12 } }
        },
        y: {
          grid: { display: false }, border: { display: false },
          ticks: {
            display: !small, autoSkip: false, color: color("ink"), font: { size: 13 },
            callback: (_value, index) => shortened(wrapped(story.steps[index].step, 34))
          }
        }
      }
    };
  };

  const keys = (figure, story) => {
    const used = new Set(story.steps.map((step) => kind(story, step)));
    const show = (name, shown) => { figure.querySelector(`.key-${name}`).hidden = !shown; };
    show("less", used.has("less"));
    show("more", used.has("more"));
    show("worse", used.has("worse"));
    show("lost", used.has("lost"));
    show("wrong", used.has("wrong"));
    show("told", story.steps.some((step) => step.told > 0));
  };

  const draw = (story) => {
    const figure = document.querySelector(`[data-chart="${story.id}"]`);
    const canvas = figure.querySelector("canvas");
    figure.hidden = false;
    const width = figure.clientWidth;
    canvas.parentElement.style.height = `${story.steps.length * (width < NARROW ? 50 : 38) + 70}px`;
    Chart.getChart(canvas)?.destroy();
    keys(figure, story);
    const limits = bounds(story);
    return new Chart(canvas, {
      type: "bar",
      data: { labels: story.steps.map((step) => step.step), datasets: datasets(story, limits[0]) },
      options: options(story, limits, width),
      plugins: [labels(story)]
    });
  };

  Chart.defaults.font.family = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  const drawAll = () => stories.forEach(draw);
  let small = null;
  drawAll();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  window.addEventListener("resize", () => {
    const now = document.documentElement.clientWidth < NARROW + 60;
    if (small !== now) { small = now; drawAll(); }
  });
})();
