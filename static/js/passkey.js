// Passkeys: asks the server for a challenge, the browser for an answer, and submits the form with it.
//
//   <form method="post" action="…" data-passkey="create|get" data-options="…" data-passkey-failed="…" hidden>
//     … <input type="hidden" name="credential"> <button>…</button>
//   </form>
import { alert } from "./app.js";

const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const text = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const known = (list) => list?.map((one) => ({ ...one, id: bytes(one.id) }));

async function options(form) {
  const csrf = form.elements._csrf?.value ?? document.querySelector('meta[name="csrf"]').content;
  const answer = await fetch(form.dataset.options, {
    method: "POST",
    headers: { "X-CSRF-Token": csrf, Accept: "application/json" },
  });
  if (!answer.ok) throw new Error(`options: ${answer.status}`);
  const answered = await answer.json();
  const made = answered.publicKey ?? answered;
  const publicKey = {
    ...made,
    challenge: bytes(made.challenge),
    excludeCredentials: known(made.excludeCredentials),
    allowCredentials: known(made.allowCredentials),
  };
  if (made.user) publicKey.user = { ...made.user, id: bytes(made.user.id) };
  return publicKey;
}

function written(credential) {
  const { response } = credential;
  const parts = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"];
  const sent = Object.fromEntries(parts.filter((part) => response[part]).map((part) => [part, text(response[part])]));
  if (response.getTransports) sent.transports = response.getTransports();
  return JSON.stringify({
    id: credential.id,
    rawId: text(credential.rawId),
    type: credential.type,
    authenticatorAttachment: credential.authenticatorAttachment,
    clientExtensionResults: credential.getClientExtensionResults(),
    response: sent,
  });
}

async function ask(form) {
  const publicKey = await options(form);
  return navigator.credentials[form.dataset.passkey]({ publicKey });
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential) continue;
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const buttons = form.querySelectorAll("button");
    for (const button of buttons) button.disabled = true;
    try {
      form.elements.credential.value = written(await ask(form));
      form.submit();
    } catch {
      alert(form.dataset.passkeyFailed);
      for (const button of buttons) button.disabled = false;
    }
  });
}
