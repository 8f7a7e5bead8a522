// Swagger UI over /openapi.json, in the reader's theme and with the reader's session (CMD-7).
const root = document.documentElement;
const night = matchMedia("(prefers-color-scheme: dark)");

function shade() {
  const { theme } = root.dataset;
  root.classList.toggle("dark-mode", theme === "dark" || (theme === "system" && night.matches));
}
shade();
night.addEventListener("change", shade);

// A request with a token and a cookie is refused, so a token goes alone. A person's change proves
// that a page of ours asked for it; the proof goes to this server only.
function prepared(request) {
  const csrf = document.querySelector("meta[name=csrf]").content;
  const isHere = new URL(request.url, location.href).origin === location.origin;
  if (request.headers?.Authorization) request.credentials = "omit";
  else if (csrf && isHere && !["GET", "HEAD"].includes((request.method ?? "GET").toUpperCase())) request.headers["X-CSRF-Token"] = csrf;
  return request;
}

const api = document.getElementById("api");
window.SwaggerUIBundle({
  url: api.dataset.description,
  domNode: api,
  deepLinking: false, // it puts a link into each button
  defaultModelsExpandDepth: 0,
  requestInterceptor: prepared,
  validatorUrl: null,
});
