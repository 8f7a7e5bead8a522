// A client of the official TypeScript SDK, driven by lines: `node mcp_client.mjs URL REDIRECT`.
// It prints one JSON object a line, and reads {"code"}, {"call", "arguments", "meta"} or "close".
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";

const [url, redirect] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const next = async () => JSON.parse((await lines.next()).value);
const tell = (what) => process.stdout.write(JSON.stringify(what) + "\n");
const kept = {};

const provider = {
  redirectUrl: redirect,
  clientMetadata: {
    client_name: "TypeScript desk",
    redirect_uris: [redirect],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    scope: "catalog.read commands.read commands.invoke offline_access",
  },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  redirectToAuthorization: (address) => tell({ authorize: String(address) }),
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
};

const connected = async () => {
  const client = new Client(
    { name: "typescript-desk", version: "1" },
    { capabilities: { elicitation: { form: {}, url: {} } } },
  );
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  try {
    await client.connect(transport);
  } catch (fault) {
    if (!(fault instanceof UnauthorizedError)) throw fault;
    await transport.finishAuth((await next()).code);
    return connected();
  }
  return client;
};

const client = await connected();
tell({ connected: client.getServerVersion(), instructions: client.getInstructions() });
const { tools } = await client.listTools();
tell({ tools: tools.map((tool) => ({ name: tool.name, annotations: tool.annotations, _meta: tool._meta })) });
for (let asked = await next(); asked !== "close"; asked = await next()) {
  try {
    const result = await client.callTool({ name: asked.call, arguments: asked.arguments, _meta: asked.meta });
    tell({ result });
  } catch (fault) {
    tell({ fault: { code: fault.code, message: fault.message, data: fault.data } });
  }
}
await client.close();
process.exit(0);
