"use strict";
// Charts are drawn when they come near, and the rest when there is time. Filters hide rows, panels and points alike.
(() => {
  const charts = new Map(JSON.parse(document.getElementById("charts").textContent).map((chart) => [chart.id, chart]));
  const form = document.getElementById("filters");
  const quiet = { labelColor: "currentColor", titleColor: "currentColor", domainColor: "currentColor",
    tickColor: "currentColor", domainOpacity: 0.4, tickOpacity: 0.4, gridColor: "currentColor", gridOpacity: 0.12,
    labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500 };
  const config = { background: "transparent", font: getComputedStyle(document.body).fontFamily, view: { stroke: null }, axis: quiet,
    legend: { labelColor: "currentColor", labelFontSize: 12, title: null, offset: 8, rowPadding: 3 },
    line: { strokeWidth: 2 } };

  // axis -> the values that are ticked; null where all are.
  function wanted() {
    const found = {};
    if (!form) return found;
    for (const box of form.querySelectorAll("input[type=checkbox]")) {
      found[box.name] ??= { all: true, values: new Set() };
      if (box.checked) found[box.name].values.add(box.value);
      else found[box.name].all = false;
    }
    for (const [axis, choice] of Object.entries(found)) if (choice.all) delete found[axis];
    return found;
  }

  const fits = (tags, filter) =>
    Object.entries(filter).every(([axis, choice]) => tags[axis] === undefined || choice.values.has(tags[axis]));

  // A band for each row, and within it one for each series where these lie side by side. Vega-Lite leaves a fifth free.
  function height(chart, rows) {
    const count = (field) => new Set(rows.map((row) => row[field])).size;
    const inner = chart.step.for === "offset" ? (1.25 * count("series")) : 1;
    return Math.max(1, count("row" in chart.rows[0] ? "row" : "series")) * inner * chart.step.step;
  }

  let drawing = Promise.resolve();
  function draw(chart) {
    if (chart.begun) return;
    chart.begun = true;
    drawing = drawing.then(async () => {
      const place = document.getElementById(chart.id);
      try {
        const rows = chart.rows.filter((row) => fits(row, wanted()));
        const spec = { ...chart.spec, data: { name: "rows", values: rows } };
        if (chart.step) spec.height = height(chart, rows);
        chart.result = await vegaEmbed(place, spec, { renderer: "svg", actions: false, config });
        place.dataset.drawn = "yes";
      } catch (error) {
        place.innerHTML = '<p class="problem">This chart cannot be drawn here; the table holds its numbers.</p>';
        console.error(error);
      }
    });
  }

  function apply() {
    const filter = wanted();
    for (const row of document.querySelectorAll("tbody tr")) row.hidden = !fits(row.dataset, filter);
    for (const panel of document.querySelectorAll(".panel")) {
      panel.hidden = !fits(panel.dataset, filter) || !panel.querySelector("tbody tr:not([hidden])");
    }
    for (const chart of charts.values()) {
      if (!chart.result || document.getElementById(chart.id).closest(".panel").hidden) continue;
      const rows = chart.rows.filter((row) => fits(row, filter));
      chart.result.view.data("rows", rows);
      if (chart.step) chart.result.view.signal("height", height(chart, rows));
      chart.result.view.runAsync();
    }
    const note = document.getElementById("filtered");
    if (note) {
      note.textContent = Object.keys(filter).length
        ? "A part is shown. The answer, the fastest at each shape, the machines and the warnings are of everything measured."
        : "";
    }
  }

  if (form) {
    form.addEventListener("change", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(apply));
    apply(); // a browser may have kept the boxes of an earlier visit
  }
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) draw(charts.get(entry.target.id));
  }, { rootMargin: "800px" });
  for (const id of charts.keys()) near.observe(document.getElementById(id));
  const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));
  const rest = [...charts.values()];
  const next = () => {
    const chart = rest.shift();
    if (!chart) return;
    draw(chart);
    drawing.then(() => idle(next));
  };
  idle(next);
  window.addEventListener("beforeprint", () => charts.forEach(draw));
})();
