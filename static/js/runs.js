// How long something goes on already (`data-since`), and how long it can still be decided (`data-left`); both in ms.
const digits = (number) => String(number).padStart(2, "0");
function said(ms) {
  const passed = Math.max(0, Math.floor(ms / 1_000));
  const hours = Math.floor(passed / 3_600);
  const minutes = Math.floor(passed / 60) % 60;
  return hours ? `${hours}:${digits(minutes)}:${digits(passed % 60)}` : `${minutes}:${digits(passed % 60)}`;
}
function tick() {
  for (const each of document.querySelectorAll("[data-since]")) each.textContent = said(Date.now() - each.dataset.since);
  for (const each of document.querySelectorAll("[data-left]")) each.textContent = `(${said(each.dataset.left - Date.now())})`;
}
setInterval(tick, 1_000);
tick();
