// Rows by framework, device and workload, a screen of them at first; the address keeps the choice.
(() => {
  const form = document.getElementById("filters"), more = document.getElementById("more");
  const rows = [...document.querySelectorAll("#latest tbody tr")], selects = [...form.querySelectorAll("select")];
  const MOST = 25;
  let whole = false;
  form.hidden = false;

  function apply() {
    const wanted = selects.filter((select) => select.value);
    const fitting = rows.filter((row) => wanted.every((select) => row.dataset[select.name].split("|").includes(select.value)));
    for (const row of rows) row.hidden = true;
    for (const row of fitting.slice(0, whole ? undefined : MOST)) row.hidden = false;
    more.hidden = whole || fitting.length <= MOST;
    more.textContent = `Show all ${fitting.length}`;
    document.getElementById("count").textContent = `${fitting.length} of ${rows.length}`;
    const kept = new URLSearchParams(wanted.map((select) => [select.name, select.value])).toString();
    if (kept || location.hash.includes("=")) history.replaceState(null, "", kept ? `#${kept}` : location.pathname);
  }
  more.addEventListener("click", () => { whole = true; apply(); });
  form.addEventListener("change", () => { whole = false; apply(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  const kept = new URLSearchParams(location.hash.slice(1));
  for (const select of selects) select.value = kept.get(select.name) ?? "";
  apply();
})();
