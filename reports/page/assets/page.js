// Choosing a setting, a shape and modes; the address keeps the choice and the section. Sorting, copying and saving
// tables. Without this everything is there, folded.
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
  for (const button of all("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button.previousElementSibling.textContent, button));
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
  const ways = [
    ["markdown", "Copy as Markdown", (table, button) => copy(markdown(table), button)],
    ["csv", "Save as CSV", (table) => {
      const url = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
      Object.assign(document.createElement("a"), { href: url, download: "figures.csv" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 1000);
    }],
  ];
  function sort(table, place, head) {
    const up = head.ariaSort !== "ascending";
    for (const one of all("th", table)) one.ariaSort = one === head ? (up ? "ascending" : "descending") : null;
    const value = (row) => {
      const { dataset, textContent } = row.cells[place];
      const number = dataset.v === undefined ? NaN : parseFloat((dataset.v || textContent).replaceAll(",", ""));
      return [textContent === "" ? 2 : Number.isNaN(number) ? 1 : 0, number, textContent];
    };
    const order = all("tbody tr", table).map((row) => [value(row), row]).sort(([a], [b]) => {
      if (a[0] !== b[0]) return a[0] - b[0];
      const order = a[0] === 0 ? a[1] - b[1] : a[2].localeCompare(b[2], "en", { numeric: true });
      return up ? order : -order;
    });
    table.tBodies[0].append(...order.map(([, row]) => row));
  }
  for (const frame of all(".panel .table, section > .table")) {
    Object.assign(frame, { tabIndex: 0, role: "region", ariaLabel: "Figures" });
    const table = frame.firstElementChild;
    const line = Object.assign(document.createElement("p"), { className: "ways" });
    for (const [key, name, act] of ways) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
      button.dataset.way = key;
      button.addEventListener("click", () => act(table, button));
      line.append(button, " ");
    }
    frame.after(line);
    all("th", table).forEach((head, place) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: head.textContent });
      button.addEventListener("click", () => sort(table, place, head));
      head.replaceChildren(button);
    });
    // On a phone rows are cards, and each figure needs its column's name.
    const names = all("th", table).map((cell) => cell.textContent);
    for (const row of all("tbody tr", table)) [...row.cells].forEach((cell, n) => { if (n) cell.dataset.title = names[n]; });
  }
  if (!form) return;
  form.hidden = false;

  const { setting, batch, tokens } = form.elements;
  const boxes = all("input[name=mode]", form);
  const mode = (item) => boxes[item.dataset.mode] ?? boxes.find((box) => box.value === item.dataset.mode);

  // What there is to choose from in a setting, and the choice that was there before.
  function offer(select, name, figures) {
    const before = select.value;
    const values = [...new Set(figures.map((figure) => figure.dataset[name]).filter((value) => value !== undefined))];
    select.replaceChildren(...[...values, "all"].map((value) => new Option(value)));
    const first = figures.find((figure) => figure.matches(".first"))?.dataset[name] ?? "all";
    select.value = values.includes(before) ? before : first;
    select.parentElement.hidden = values.length < 2;
  }
  const fits = (data) => ["batch", "tokens"].every((name) => {
    const wanted = form.elements[name].value;
    return wanted === "all" || wanted === "" || data[name] === undefined || data[name] === wanted;
  });

  function apply(event) {
    const name = setting.options[setting.selectedIndex].text;
    for (const panel of all(".panel[data-setting]")) {
      panel.hidden = panel.dataset.setting !== setting.value;
      if (!panel.hidden && (!event || event.target === setting)) panel.open = true;
      panel.firstElementChild.classList.toggle("same", panel.firstElementChild.textContent === name);
    }
    for (const panel of all(`.panel[data-setting="${setting.value}"]`)) {
      const shapes = all("figure.shape", panel);
      const chosen = shapes.filter((figure) => fits(figure.dataset)).sort((a, b) => b.matches(".first") - a.matches(".first"))[0]
        ?? shapes[0];
      for (const figure of shapes) figure.classList.toggle("on", figure === chosen);
      for (const item of all("[data-mode]", panel)) {
        const shown = mode(item).checked && (item.localName !== "tr" || fits(item.dataset));
        if (item.localName === "tr") item.hidden = !shown;
        else item.style.display = shown ? "" : "none";
      }
    }
    for (const section of all("main > section")) {
      const panels = all(".panel", section);
      section.classList.toggle("empty", panels.length > 0 && panels.every((panel) => panel.hidden));
    }
    const hidden = boxes.filter((box) => !box.checked).length;
    document.getElementById("count").textContent = hidden ? `${hidden} modes are hidden; the sentences count them.` : "";
    keep();
  }

  let section = "";
  function keep() {
    const kept = new URLSearchParams();
    if (setting.selectedIndex) kept.set("setting", setting.options[setting.selectedIndex].text);
    for (const select of [batch, tokens]) if (select.value && !select.parentElement.hidden) kept.set(select.name, select.value);
    const shown = boxes.filter((box) => box.checked);
    if (shown.length < boxes.length) kept.set("modes", shown.map((box) => box.value).join(","));
    if (section) kept.set("section", section);
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
    section = kept.get("section") ?? (/^#[\w-]+$/.test(location.hash) ? location.hash.slice(1) : "");
    apply();
    if (section) document.getElementById(section)?.scrollIntoView();
  }
  function choose() {
    const figures = all(`#answer .panel[data-setting="${setting.value}"] figure`);
    offer(batch, "batch", figures);
    offer(tokens, "tokens", figures);
  }

  form.addEventListener("change", (event) => {
    if (event.target === setting) choose();
    apply(event);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const link of all('nav a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      section = link.hash.slice(1);
      const target = document.getElementById(section);
      for (const details of all(":scope > details", target)) details.open = true;
      target.scrollIntoView();
      keep();
    });
  }
  window.addEventListener("hashchange", () => { if (location.hash.includes("=")) restore(); });
  document.getElementById("link").addEventListener("click", (event) => copy(location.href, event.target));
  restore();
})();
