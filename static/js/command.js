// The form of a command: what was typed survives a reload and a sign-out, and a lost answer is not asked for again.

const drafts = (form) => [...form.elements].filter(
  (field) => field.name && !["hidden", "password", "submit", "button"].includes(field.type) && field.localName !== "fieldset",
);

// Kept for this tab alone, under the person's id: nobody else who signs in here sees it. Secrets are never kept.
document.addEventListener("input", ({ target }) => {
  const form = target.closest("[data-draft]");
  if (!form) return;
  const typed = drafts(form).map((field) => [field.name, field.value, field.checked ?? null]);
  sessionStorage.setItem(form.dataset.draft, JSON.stringify(typed));
});

function restore(form) {
  const kept = sessionStorage.getItem(form.dataset.draft);
  if (!kept || "answered" in form.dataset) return;
  const used = new Set();
  for (const [name, value, checked] of JSON.parse(kept)) {
    const field = drafts(form).find((each) => !used.has(each) && each.name === name && (checked === null || each.value === value || !["radio", "checkbox"].includes(each.type)));
    if (!field) continue;
    used.add(field);
    if (["radio", "checkbox"].includes(field.type)) field.checked = checked;
    else if (field.localName !== "select" || [...field.options].some((option) => option.value === value)) field.value = value;
  }
}
for (const form of document.querySelectorAll("[data-draft]")) restore(form);
for (const done of document.querySelectorAll("[data-draft-done]")) sessionStorage.removeItem(done.dataset.draftDone);

// The answer to a call did not arrive: it may have run. It can be looked up, by its own id; nothing repeats it (UI-17).
function lost(element) {
  if (!element?.matches?.("[data-call]")) return;
  const said = document.getElementById("lost");
  element.hidden = true;
  said.hidden = false;
  said.focus();
}
document.addEventListener("htmx:error", ({ detail }) => {
  if (detail.ctx && !detail.ctx.response) lost(detail.ctx.sourceElement);
});
document.addEventListener("htmx:response:error", ({ detail }) => {
  if (detail.ctx.response.status >= 500) lost(detail.ctx.sourceElement);
});
