// Choosing a setting, a shape and modes; the address keeps the choice. Copying tables. All is shown without this, folded.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const form = document.getElementById("filters");

  async function copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // pages opened from a file may not use the clipboard
      const area = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const name = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = name; }, 1200);
  }

  // As they are shown, or with the digits behind them.
  function rows(table, exact) {
    const shown = all("tr", table).filter((row) => !row.hidden);
    return shown.map((row) => all("th, td", row).map((cell) => (exact && cell.dataset.v) || cell.textContent.trim()));
  }
  function markdown(table) {
    const [head, ...body] = rows(table);
    const rule = all("th", table).map((cell) => (cell.className === "n" ? "---:" : "---"));
    return [head, rule, ...body].map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`).join("\n");
  }
  const quoted = (cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const csv = (table) => rows(table, true).map((cells) => cells.map(quoted).join(",")).join("\n");
  const ways = { Markdown: markdown, CSV: csv };
  for (const frame of all(".panel .table")) {
    Object.assign(frame, { tabIndex: 0, role: "region", ariaLabel: "Figures" });
    const line = Object.assign(document.createElement("p"), { className: "copy" });
    for (const [name, text] of Object.entries(ways)) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: `Copy as ${name}` });
      button.dataset.copy = name.toLowerCase();
      button.addEventListener("click", () => copy(text(frame.firstElementChild), button));
      line.append(button, " ");
    }
    frame.before(line);
  }
  // What rows share stands in the first of them alone, which may be hidden.
  for (const body of all("tbody")) {
    const [first, ...others] = [...body.rows].map((row) => row.cells[0]);
    for (const cell of others) cell.textContent ||= first.textContent;
  }
  // On a phone rows are cards, and each figure needs its column's name.
  for (const table of all("table")) {
    const names = all("th", table).map((cell) => cell.textContent);
    for (const row of all("tbody tr", table)) [...row.cells].forEach((cell, n) => { if (n) cell.dataset.title = names[n]; });
  }
  if (!form) return;
  form.hidden = false;

  const { setting, batch, tokens } = form.elements;
  const boxes = all("input[name=mode]", form);
  const own = (key) => all(`.panel[data-setting="${key}"]`);

  // What there is to choose from in a setting, and the choice that was there before.
  function offer(select, name, figures) {
    const before = select.value;
    const values = [...new Set(figures.map((figure) => figure.dataset[name]).filter((value) => value !== undefined))];
    select.replaceChildren(...["all", ...values].map((value) => new Option(value)));
    select.value = values.includes(before) ? before : "all";
    select.parentElement.hidden = values.length < 2;
  }
  const isShown = (item) => boxes[item.dataset.mode].checked;
  const fits = (data) => ["batch", "tokens"].every((name) => {
    const wanted = form.elements[name].value;
    return wanted === "all" || wanted === "" || data[name] === undefined || data[name] === wanted;
  });

  // Lines of a chart are moved up where those above them are hidden.
  function stack(chart) {
    const step = Number(chart.dataset.step), top = Number(chart.dataset.top);
    const whole = chart.dataset.whole ??= chart.getAttribute("height");
    const lines = all("g.row", chart);
    let count = 0;
    for (const line of lines) {
      if (line.style.display === "none") continue;
      line.setAttribute("transform", `translate(0 ${top + step * count})`);
      count += 1;
    }
    chart.setAttribute("height", whole - step * (lines.length - count));
  }

  function apply(event) {
    const modes = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const name = setting.options[setting.selectedIndex].text;
    for (const panel of all(".panel[data-setting]")) {
      panel.hidden = panel.dataset.setting !== setting.value;
      if (!panel.hidden && (!event || event.target === setting)) panel.open = true;
      panel.firstElementChild.classList.toggle("same", panel.firstElementChild.textContent === name);
    }
    for (const panel of own(setting.value)) {
      const shapes = all("figure.shape", panel);
      const chosen = shapes.filter((figure) => fits(figure.dataset)).sort((a, b) => b.matches(".first") - a.matches(".first"))[0]
        ?? shapes[0];
      for (const figure of shapes) figure.classList.toggle("on", figure === chosen);
      for (const table of all("table", panel)) {
        const place = all("th", table).findIndex((cell) => cell.textContent === "mode");
        for (const row of all("tbody tr", table)) {
          row.hidden = !fits(row.parentElement.dataset) || (place >= 0 && !modes.has(row.cells[place].textContent));
        }
      }
      for (const line of all("svg g.row", panel)) {
        const show = fits(line.dataset) && (line.dataset.mode === undefined || isShown(line));
        line.style.display = show ? "" : "none";
      }
      for (const item of all("[data-mode]:not(.row)", panel)) {
        item.style.display = isShown(item) ? "" : "none";
      }
      all("svg[data-step]", panel).forEach(stack);
    }
    for (const section of all("main > section")) {
      const panels = all(".panel", section);
      section.classList.toggle("empty", panels.length > 0 && panels.every((panel) => panel.hidden));
    }
    const hidden = boxes.length - modes.size;
    document.getElementById("told").textContent = hidden ? `${hidden} modes are hidden; the sentences count them.` : "";
    keep(modes);
  }

  function keep(modes) {
    const kept = new URLSearchParams();
    if (setting.selectedIndex) kept.set("setting", setting.options[setting.selectedIndex].text);
    for (const select of [batch, tokens]) if (select.value && select.value !== "all") kept.set(select.name, select.value);
    if (modes.size < boxes.length) kept.set("modes", [...modes].join(","));
    const text = kept.toString();
    if (text || location.hash.includes("=")) history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  }

  function restore() {
    const kept = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
    const place = [...setting.options].find((option) => option.text === kept.get("setting"));
    setting.value = place ? place.value : setting.options[0].value;
    const modes = kept.has("modes") ? new Set(kept.get("modes").split(",")) : null;
    for (const box of boxes) box.checked = !modes || modes.has(box.value);
    choose();
    for (const select of [batch, tokens]) {
      const value = kept.get(select.name);
      if ([...select.options].some((option) => option.value === value)) select.value = value;
    }
    apply();
  }
  function choose() {
    const figures = all("#answer .panel").filter((panel) => panel.dataset.setting === setting.value).flatMap((panel) => all("figure", panel));
    offer(batch, "batch", figures);
    offer(tokens, "tokens", figures);
  }

  form.addEventListener("change", (event) => {
    if (event.target === setting) choose();
    apply(event);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", () => { if (location.hash.includes("=")) restore(); });
  document.getElementById("link").addEventListener("click", (event) => copy(location.href, event.target));
  restore();
})();
