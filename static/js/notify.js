// Settings: whether this browser shows notifications. It is asked when the person presses, never by itself.

const granted = () => globalThis.Notification?.permission === "granted";
const state = () => (granted() && localStorage.notify === "on" ? "on" : Notification.permission === "denied" ? "denied" : "off");

function drawChoice() {
  for (const box of document.querySelectorAll("[data-notify]")) {
    box.hidden = !globalThis.Notification;
    if (box.hidden) continue;
    for (const line of box.querySelectorAll("[data-if]")) line.hidden = line.dataset.if !== state();
    box.querySelector("[data-notify-contents]").checked = localStorage.notifyContents === "on";
  }
}
document.addEventListener("click", async ({ target }) => {
  const act = target.closest?.("[data-notify-act]")?.dataset.notifyAct;
  if (!act) return;
  localStorage.notify = act === "on" && (await Notification.requestPermission()) === "granted" ? "on" : "off";
  drawChoice();
});
document.addEventListener("change", ({ target }) => {
  if (target.matches?.("[data-notify-contents]")) localStorage.notifyContents = target.checked ? "on" : "off";
});
drawChoice();
