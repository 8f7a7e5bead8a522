// Where there is a touch screen: what sticks to the bottom of a page stands above the keyboard (UI-100).
const root = document.documentElement;
const seen = globalThis.visualViewport;
function lift() {
  const covered = seen.scale > 1 ? 0 : root.clientHeight - seen.height - seen.offsetTop; // a magnified page has no keyboard
  const height = `${Math.max(0, Math.round(covered))}px`;
  if (root.style.getPropertyValue("--keyboard") === height) return;
  root.style.setProperty("--keyboard", height);
  dispatchEvent(new Event("resize")); // not every browser says it of the window
}
for (const type of ["resize", "scroll"]) seen?.addEventListener(type, lift);
