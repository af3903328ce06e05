// Shows /openapi.json: all calls, searchable, each can be tried. It uses no library and loads
// nothing from other hosts.
"use strict";

const DEPTH_MAX = 6; // Nesting of schemas: deeper ones are shown by name.
const SHOWN_CHARS_MAX = 200000; // Length of a response: a browser lays out more only slowly.
const METHODS = ["get", "post", "put", "delete"];

let api = null;
let credentials = null;

const byId = (id) => document.getElementById(id);

// Inserts text as text only: nothing in a response of the service becomes markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function resolve(schema) {
  const parts = schema && schema.$ref && schema.$ref.split("/").slice(1);
  return parts ? parts.reduce((at, part) => at && at[part], api) : schema;
}

const nameOf = (schema) => (schema && schema.$ref ? schema.$ref.split("/").pop() : "");

function typeOf(schema) {
  if (!schema) return "any";
  if (schema.$ref) return nameOf(schema);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.oneOf || schema.anyOf) return (schema.oneOf || schema.anyOf).map(typeOf).join(" or ");
  if (schema.allOf) return schema.allOf.map(typeOf).join(" and ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  const type = [].concat(schema.type || "any").join(" or ");
  return schema.format ? `${type} (${schema.format})` : type;
}

function showSchema(schema, depth = 0) {
  const whole = resolve(schema);
  if (!whole || depth > DEPTH_MAX) return null;
  if (whole.type === "array") return showSchema(whole.items, depth);
  if (whole.allOf) return make("div", {}, ...whole.allOf.map((part) => showSchema(part, depth)));
  if (whole.enum) return make("p", { class: "faint" }, `One of ${whole.enum.join(", ")}`);
  const list = make("ul", { class: "schema" });
  for (const [name, property] of Object.entries(whole.properties || {})) {
    const inner = resolve(property);
    const words = property.description || (inner && inner.description) || "";
    const needed = (whole.required || []).includes(name);
    const item = make("li", {}, make("code", needed ? { class: "needed" } : {}, name),
      " ", make("span", { class: "faint" }, typeOf(property)), words ? ` — ${words}` : "");
    const target = inner && inner.type === "array" ? resolve(inner.items) : inner;
    if (target && (target.properties || target.enum)) item.append(showSchema(target, depth + 1));
    list.append(item);
  }
  if (whole.additionalProperties && whole.additionalProperties !== true) {
    list.append(make("li", {}, make("i", {}, "any name"), " ", typeOf(whole.additionalProperties)));
  }
  return list.children.length ? list : make("p", { class: "faint" }, typeOf(whole), whole.description ? `: ${whole.description}` : "");
}

// Indents JSON without parsing its numbers, so that every digit stays as it was received.
function indent(text) {
  let out = "", depth = 0, quoted = false;
  const line = () => "\n" + "  ".repeat(Math.max(depth, 0));
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (quoted) {
      out += letter;
      if (letter === "\\") { at += 1; out += text[at] ?? ""; }
      else if (letter === '"') quoted = false;
    } else if (letter === '"') { quoted = true; out += letter; }
    else if (letter === "{" || letter === "[") {
      const close = letter === "{" ? "}" : "]";
      const next = text.slice(at + 1).match(/^\s*(.)/);
      if (next && next[1] === close) { out += letter + close; at += next[0].length; }
      else { depth += 1; out += letter + line(); }
    } else if (letter === "}" || letter === "]") { depth -= 1; out += line() + letter; }
    else if (letter === ",") out += letter + line();
    else if (letter === ":") out += ": ";
    else if (!/\s/.test(letter)) out += letter;
  }
  return out;
}

function exampleOf(media) {
  if (!media) return "";
  if (media.example !== undefined) return media.example;
  const first = Object.values(media.examples || {})[0];
  return first ? first.value : "";
}

// Returns the request that the form describes.
function requestOf(call, form) {
  let path = call.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const input of form.querySelectorAll("[data-in]")) {
    const { in: place, name } = input.dataset;
    if (place === "path") path = path.replace(`{${name}}`, encodeURIComponent(input.value));
    else if (input.value !== "" && place === "query") query.append(name, input.value);
    else if (input.value !== "" && place === "header") headers[name] = input.value;
  }
  if (credentials) headers.Authorization = credentials;
  const body = form.querySelector("textarea");
  const options = { method: call.method.toUpperCase(), headers };
  if (body && body.value.trim() !== "") {
    options.body = body.value;
    headers["Content-Type"] = "application/json";
  }
  return { url: path + (query.size ? `?${query}` : ""), options };
}

function curlOf({ url, options }) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const words = ["curl", "-i"];
  if (options.method !== "GET") words.push("-X", options.method);
  for (const [name, value] of Object.entries(options.headers)) {
    words.push("-H", quote(`${name}: ${name === "Authorization" ? value.split(" ")[0] + " …" : value}`));
  }
  if (options.body) words.push("-d", quote(options.body));
  return [...words, quote(location.origin + url)].join(" ");
}

async function send(call, form, output) {
  const request = requestOf(call, form);
  output.replaceChildren(make("p", { class: "faint" }, "Waiting …"));
  const begun = performance.now();
  try {
    const response = await fetch(request.url, request.options);
    const text = await response.text();
    const took = Math.round(performance.now() - begun);
    const isJson = (response.headers.get("content-type") || "").includes("json");
    const shown = isJson ? indent(text) : text;
    const cut = shown.length > SHOWN_CHARS_MAX ? shown.slice(0, SHOWN_CHARS_MAX) + "\n… and more" : shown;
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    output.replaceChildren(
      make("p", {}, make("b", { class: response.ok ? "good" : "bad" }, `${response.status} ${response.statusText}`), ` in ${took} ms`),
      make("details", {}, make("summary", {}, "Headers"), make("pre", {}, headers)),
      make("pre", { tabindex: "0" }, cut || "(empty)"),
      make("details", {}, make("summary", {}, "As a command"), make("pre", { tabindex: "0" }, curlOf(request))));
  } catch (error) {
    output.replaceChildren(make("p", { class: "bad" }, `Nothing came back: ${error.message}`));
  }
}

function parametersOf(call) {
  const parameters = (call.parameters || []).map(resolve);
  if (!parameters.length) return null;
  const rows = parameters.map((parameter) => {
    const label = `${call.id}-${parameter.name}`;
    const input = make("input", { id: label, "data-in": parameter.in, "data-name": parameter.name,
      value: parameter.required && parameter.example !== undefined ? String(parameter.example) : "",
      placeholder: parameter.example !== undefined ? String(parameter.example) : "", spellcheck: "false" });
    return make("tr", {},
      make("td", {}, make("label", { for: label }, make("code", parameter.required ? { class: "needed" } : {}, parameter.name)),
        make("div", { class: "faint" }, `${parameter.in}, ${typeOf(parameter.schema)}`)),
      make("td", {}, parameter.description || ""), make("td", {}, input));
  });
  const head = make("tr", {}, ...["Name", "What", "Value"].map((word) => make("th", {}, word)));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}

function responsesOf(call) {
  const rows = Object.entries(call.responses || {}).map(([status, response]) => {
    const whole = resolve(response);
    const media = whole.content && Object.values(whole.content)[0];
    const example = exampleOf(media);
    return make("details", {},
      make("summary", {}, make("b", { class: status < "400" ? "good" : "bad" }, status), ` ${whole.description || ""}`),
      media && media.schema ? make("p", { class: "faint" }, typeOf(media.schema)) : null,
      media && media.schema ? showSchema(media.schema) : null,
      example !== "" ? make("pre", { tabindex: "0" }, JSON.stringify(example, null, 2)) : null);
  });
  return make("div", {}, make("h3", {}, "Answers"), ...rows);
}

function fill(call, place) {
  const body = call.requestBody && Object.values(resolve(call.requestBody).content)[0];
  const form = make("form", { autocomplete: "off" });
  const output = make("div", { role: "status", "aria-live": "polite" });
  form.append(...[
    call.description ? make("p", {}, call.description) : null,
    parametersOf(call),
    body ? make("h3", {}, "Body ", make("span", { class: "faint" }, typeOf(body.schema))) : null,
    body ? showSchema(body.schema) : null,
    body ? make("textarea", { "aria-label": "Body", spellcheck: "false" }, JSON.stringify(exampleOf(body), null, 2)) : null,
    make("p", {}, make("button", { type: "submit" }, "Send")),
  ].filter(Boolean));
  form.addEventListener("submit", (event) => { event.preventDefault(); send(call, form, output); });
  place.append(form, output, responsesOf(call));
}

function show(call) {
  const content = make("div");
  const details = make("details", { class: "call", id: call.id },
    make("summary", {},
      make("span", { class: `method ${call.method.toUpperCase()}` }, call.method.toUpperCase()),
      make("span", { class: "path" }, call.path), make("span", {}, call.summary || ""),
      call["x-role"] ? make("span", { class: "role" }, call["x-role"]) : null),
    content);
  // Filled when it is opened, so that the page loads at once.
  details.addEventListener("toggle", () => { if (details.open && !content.children.length) fill(call, content); });
  return details;
}

function callsOf() {
  const calls = [];
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((method) => item[method])) {
      const call = { ...item[method], path, method };
      calls.push({ ...call, id: call.operationId, tag: (call.tags || ["Other"])[0],
        words: [method, path, call.summary, call.description, ...(call.tags || [])].join(" ").toLowerCase() });
    }
  }
  return calls;
}

function lay(calls) {
  const tags = (api.tags || []).map((tag) => tag.name);
  const main = byId("main"), contents = byId("contents");
  main.replaceChildren(make("p", {}, api.info.description || ""));
  const none = make("p", { id: "none", hidden: true }, "Nothing like that.");
  for (const tag of [...new Set([...tags, ...calls.map((call) => call.tag)])]) {
    const own = calls.filter((call) => call.tag === tag);
    if (!own.length) continue;
    const about = (api.tags || []).find((other) => other.name === tag);
    main.append(make("section", {}, make("h2", {}, tag), about && about.description ? make("p", { class: "faint" }, about.description) : null, ...own.map(show)));
    contents.append(make("section", {}, make("h3", {}, tag), ...own.map((call) =>
      make("a", { href: `#${call.id}`, "data-call": call.id, title: call.path }, make("span", { class: call.method.toUpperCase() }, call.method.toUpperCase()), ` ${call.path.replace("/rest", "")}`))));
  }
  main.append(none);
}

function search(calls) {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const call of calls) {
    const isFound = words.every((word) => call.words.includes(word));
    found += isFound;
    byId(call.id).hidden = !isFound;
    document.querySelector(`[data-call="${CSS.escape(call.id)}"]`).hidden = !isFound;
  }
  for (const section of document.querySelectorAll("section")) {
    section.hidden = ![...section.querySelectorAll(".call, [data-call]")].some((call) => !call.hidden);
  }
  byId("none").hidden = found > 0;
}

function openTarget() {
  const call = byId(decodeURIComponent(location.hash.slice(1)));
  if (call && call.matches(".call")) { call.open = true; call.scrollIntoView(); }
}

function encode(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function listen(calls) {
  byId("search").addEventListener("input", () => search(calls));
  window.addEventListener("hashchange", openTarget);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.matches("input, textarea")) { event.preventDefault(); byId("search").focus(); }
  });
}

function listenToHead() {
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });
  byId("login-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const user = byId("user").value, secret = byId("secret").value;
    credentials = secret === "" ? null : user === "" ? `Bearer ${secret}` : `Basic ${encode(`${user}:${secret}`)}`;
    byId("login-state").textContent = credentials ? user || "With a token" : "No login";
    byId("login").open = false;
  });
  byId("login-form").addEventListener("reset", () => { credentials = null; byId("login-state").textContent = "No login"; });
}

async function start() {
  listenToHead();
  try {
    const response = await fetch("/openapi.json");
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    api = await response.json();
  } catch (error) {
    byId("status").textContent = `The description cannot be read: ${error.message}`;
    return;
  }
  byId("version").textContent = api.info.version;
  const calls = callsOf();
  lay(calls);
  listen(calls);
  openTarget();
}

start();
