// The emulator's JavaScript kernel: reads requests on descriptor 3, one JSON
// object a line, and answers events on descriptor 4. State lives in the global
// scope of node's own REPL, which knows top-level await.
"use strict";
const fs = require("fs");
const net = require("net");
const repl = require("repl");
const util = require("util");
const { PassThrough } = require("stream");

function emit(event) {
  let data = Buffer.from(JSON.stringify(event) + "\n");
  while (data.length > 0) {
    try {
      data = data.subarray(fs.writeSync(4, data));
    } catch (e) {
      if (e.code !== "EAGAIN") throw e;
    }
  }
}

for (const [name, stream] of [["stdout", process.stdout], ["stderr", process.stderr]]) {
  stream.write = (chunk, encoding, done) => {
    if (typeof encoding === "function") done = encoding;
    emit({ e: name, text: typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8") });
    if (done) process.nextTick(done);
    return true;
  };
}

function formats(value) {
  const data = { text: util.inspect(value) };
  if (value && typeof value === "object") {
    for (const [name, method] of [["html", "_toHtml"], ["svg", "_toSvg"], ["png", "_toPng"], ["jpeg", "_toJpeg"], ["markdown", "_toMarkdown"]]) {
      if (typeof value[method] === "function") data[name] = value[method]();
    }
  }
  return data;
}

globalThis.display = (value) => emit({ e: "result", data: formats(value), main: false });

const shell = repl.start({
  prompt: "", input: new PassThrough(), output: new PassThrough(), terminal: false, useGlobal: true, breakEvalOnSigint: true,
});

// Static imports are not for scripts; the dynamic ones are.
function withImports(code) {
  const clause = /^[ \t]*import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*|(\{[^}]*\})\s*)?from\s*(["'][^"']+["'])[ \t]*;?/gm;
  return code
    .replace(clause, (_, name, all, names, from) => {
      const parts = [];
      if (name) parts.push(`var ${name} = (await import(${from})).default;`);
      if (all) parts.push(`var ${all} = await import(${from});`);
      if (names) parts.push(`var ${names.replace(/\sas\s/g, ": ")} = await import(${from});`);
      return parts.join(" ");
    })
    .replace(/^[ \t]*import\s*(["'][^"']+["'])[ \t]*;?/gm, "await import($1);");
}

function report(error) {
  if (!(error instanceof Error) && !(error && error.stack)) {
    return emit({ e: "error", name: "Error", value: util.inspect(error), traceback: util.inspect(error) });
  }
  emit({ e: "error", name: error.name || "Error", value: String(error.message), traceback: String(error.stack).split(/\n +at .*\(node:(?:internal\/)?vm/)[0] });
}

// The REPL runs code in a domain, which gets what the code throws.
let thrown = report;
shell._domain.removeAllListeners("error");
shell._domain.on("error", (error) => thrown(error));

// While code runs synchronously, node's own watchdog handles SIGINT, and only
// if there is no listener: removing one would take the watchdog's handler away.
const idle = () => {};
process.on("SIGINT", idle);

function evaluate(code) {
  return new Promise((resolve) => {
    let settled = false;
    const interrupted = () => finish({ error: new Error("Script execution was interrupted by `SIGINT`") });
    const finish = (outcome) => {
      settled = true;
      process.removeListener("SIGINT", interrupted);
      process.removeListener("SIGINT", idle);
      process.on("SIGINT", idle);
      thrown = report;
      resolve(outcome);
    };
    thrown = (error) => finish({ error });
    process.removeListener("SIGINT", idle);
    try {
      shell.eval(withImports(code) + "\n", shell.context, "cell.js", (error, value) => {
        if (error && error.constructor && error.constructor.name === "Recoverable") error = error.err;
        finish(error ? { error } : { value });
      });
    } catch (error) {
      finish({ error });
    }
    if (!settled) process.on("SIGINT", interrupted);
  });
}

async function execute(request) {
  const before = {};
  for (const name of Object.keys(request.env || {})) {
    before[name] = process.env[name];
    process.env[name] = request.env[name];
  }
  const outcome = await evaluate(request.code);
  if (outcome.error !== undefined) report(outcome.error);
  else if (outcome.value !== undefined) emit({ e: "result", data: formats(outcome.value), main: true });
  for (const name of Object.keys(before)) {
    if (before[name] === undefined) delete process.env[name];
    else process.env[name] = before[name];
  }
  for (const fd of [1, 2]) fs.writeSync(fd, request.marker);
  emit({ e: "done" });
}

process.on("uncaughtException", report);
process.on("unhandledRejection", report);

let waiting = "";
let chain = Promise.resolve();
const requests = new net.Socket({ fd: 3, readable: true, writable: false });
requests.setEncoding("utf8");
requests.on("end", () => process.exit(0));
requests.on("data", (chunk) => {
  waiting += chunk;
  for (let end; (end = waiting.indexOf("\n")) >= 0; ) {
    const request = JSON.parse(waiting.slice(0, end));
    waiting = waiting.slice(end + 1);
    if (request.cwd) {
      try {
        process.chdir(request.cwd);
      } catch (error) {
        report(error);
      }
      emit({ e: "done" });
      continue;
    }
    chain = chain.then(() => execute(request));
  }
});
emit({ e: "ready" });
