// Serves OpenAI's streaming chat completions from a small model on the processor: node real_model.mjs FOLDER
import { createServer } from "node:http";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const { getLlama, LlamaCompletion } = await import(
  pathToFileURL(join(folder, "node", "node_modules", "node-llama-cpp", "dist", "index.js")).href
);
const file = readdirSync(folder, { recursive: true }).find((name) => name.endsWith(".gguf"));
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error" });
const model = await llama.loadModel({ modelPath: join(folder, file) });

const chatml = (messages) =>
  messages.map(({ role, content }) => `<|im_start|>${role}\n${content ?? ""}<|im_end|>\n`).join("") +
  "<|im_start|>assistant\n";

let queue = Promise.resolve(); // one answer at a time, on one thread: several spin while others work

async function answer(asked, response) {
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const context = await model.createContext({ contextSize: 1024, threads: 1 });
  const completion = new LlamaCompletion({ contextSequence: context.getSequence() });
  const head = { id: "real-1", object: "chat.completion.chunk", created: 1, model: "smollm2-135m" };
  const send = (more) => response.write(`data: ${JSON.stringify({ ...head, ...more })}\n\n`);
  const choice = (delta, finish_reason = null) => ({ choices: [{ index: 0, delta, finish_reason }] });
  response.writeHead(200, { "content-type": "text/event-stream" });
  try {
    const prompt = model.tokenize(chatml(asked.messages), true);
    let output = 0;
    const { metadata } = await completion.generateCompletionWithMeta(prompt, {
      maxTokens: asked.max_completion_tokens ?? asked.max_tokens,
      temperature: 0,
      seed: 1,
      customStopTriggers: ["<|im_end|>"],
      signal: gone.signal,
      onToken: (tokens) => (output += tokens.length),
      onTextChunk: (content) => send(choice({ content })),
    });
    send(choice({}, metadata.stopReason === "maxTokens" ? "length" : "stop"));
    const usage = { prompt_tokens: prompt.length, completion_tokens: output };
    send({ choices: [], usage: { ...usage, total_tokens: prompt.length + output } });
    response.end("data: [DONE]\n\n");
  } catch (fault) {
    if (!gone.signal.aborted) response.destroy(fault);
    console.log("gone");
  } finally {
    await context.dispose();
  }
}

const server = createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  queue = queue.then(() => answer(JSON.parse(body), response)).catch((fault) => console.error(fault));
});
server.listen(0, "127.0.0.1", () => console.log(`port ${server.address().port}`));
