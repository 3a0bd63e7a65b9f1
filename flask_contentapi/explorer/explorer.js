// The page: its frame, and what its address says. `#/pages/?limit=5` is a query, `#browse/pages/` the content.

import { facets, facts, json, pager, sheet, table } from "./answer.js";
import { browse } from "./browse.js";
import { Builder, problems } from "./builder.js";
import { COPIES } from "./copies.js";
import { Description, get } from "./description.js";
import { h, replace } from "./dom.js";
import { Query } from "./query.js";
import { current, languages, speak, t } from "./words.js";

const frame = document.getElementById("explorer");
let api, builder, answerPlace, addressBox, said, running;
let shape = "table";

const go = (hash) => {
  // At once, so that a second click finds what the first one has changed.
  if (location.hash !== hash) history.pushState(null, "", hash);
  route();
};
const ask = (query) => go(`#${query}`);
const address = () => {
  const hash = location.href.split("#").slice(1).join("#");
  return hash || "browse/";
};

function header(isQuery) {
  const tab = (href, text, isCurrent) => h("a", { href, "aria-current": isCurrent ? "page" : null }, text);
  const name = api.index.site?.site_name || api.title;
  return h("header", {}, h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); document.querySelector("main").focus(); } }, t("Skip to the content")),
    h("strong", { class: "brand" }, name, h("small", {}, t("API explorer"))),
    h("nav", { "aria-label": t("View") }, tab("#browse/", t("Content"), !isQuery), tab("#/pages/", t("Query"), isQuery), h("a", { href: "../openapi.json" }, "OpenAPI")),
    h("label", { class: "language" }, h("span", { class: "unseen" }, t("Language")), h("select", { id: "language", onchange: (event) => { speak(event.target.value); draw(); } },
      languages.map(([code, text]) => h("option", { value: code, lang: code, selected: code === current() }, text)))));
}

/** Makes the whole page anew, in the present language. */
function draw() {
  document.title = `${api.index.site?.site_name || api.title} · ${t("API explorer")}`;
  builder = null;
  route();
}

function route() {
  const hash = address();
  running?.abort();
  // Pages of another site are found there alone.
  api.site = new Query(hash).get("site");
  if (hash.startsWith("/")) return showQuery(new Query(hash));
  const query = new Query(hash.replace(/^browse\/?(?=\?|$)/, "browse/pages/").replace(/^browse/, ""));
  builder = null;
  const isSame = frame.querySelector("main")?.dataset.shown === query.path;
  const main = h("main", { id: "main", tabindex: -1, class: "browse", "data-shown": query.path }, browse(api, query, (wanted) => go(`#browse${wanted}`)));
  if (isSame) return replace(frame.querySelector("main"), [...main.childNodes]);
  return replace(frame, header(false), main);
}

// Queries.

function showQuery(query) {
  if (!builder) {
    builder = new Builder(api, ask);
    answerPlace = h("section", { class: "answer", "aria-label": t("Answer") });
    addressBox = h("textarea", { id: "address", rows: 1, spellcheck: "false", autocomplete: "off", autocapitalize: "off", onkeydown: (event) => event.key === "Enter" && (event.preventDefault(), event.target.form.requestSubmit()), "aria-label": t("Path below {base}", { base: api.base }) });
    const send = (event) => {
      event.preventDefault();
      const text = addressBox.value.replaceAll(/\s*\n\s*/g, "").trim();
      ask(api.path(text) ?? `/${text.replace(/^\/+/, "")}`);
    };
    said = h("p", { class: "unseen", role: "status" });
    replace(frame, header(true), h("main", { id: "main", tabindex: -1, class: "query" }, h("h1", { class: "unseen" }, t("Query")), said,
      h("form", { class: "address", onsubmit: send }, h("span", { class: "prefix", "aria-hidden": "true" }, "GET ", h("span", {}, new URL(api.base).pathname)), addressBox, h("button", { id: "send" }, t("Send"))), builder.place, answerPlace));
  }
  addressBox.value = readable(String(query));
  builder.show(query, builder.answered === query.path ? builder.label : undefined);
  fetchAnswer(query);
}

const readable = (text) => {
  try {
    // What is a sign of the address stays as it is.
    return decodeURI(text);
  } catch {
    return text;
  }
};

async function fetchAnswer(query) {
  running = new AbortController();
  const { signal } = running;
  answerPlace.setAttribute("aria-busy", "true");
  let answer;
  try {
    answer = await get(address(), signal);
  } catch (error) {
    if (signal.aborted) return;
    answerPlace.removeAttribute("aria-busy");
    replace(answerPlace, h("p", { class: "problem", role: "alert" }, t("The server does not answer."), ` ${error.message}`));
    return;
  }
  if (signal.aborted) return;
  answerPlace.removeAttribute("aria-busy");
  const label = answer.body?.meta?.type;
  builder.answered = query.path;
  builder.show(query, typeof label === "string" ? label : undefined, answer.status >= 400 ? problems(query, answer.body?.message ?? "") : undefined);
  showAnswer(query, answer);
}

function showAnswer(query, answer) {
  const { body } = answer;
  const isList = Array.isArray(body?.items);
  const total = body?.meta?.total_count;
  said.textContent = `${t("Answer")}: ${answer.status}${isList && total !== undefined ? `, ${t("{n} entries", { n: total })}` : ""}`;
  const shapes = h("div", { class: "shapes", role: "group", "aria-label": t("View") }, [["table", t("Table")], ["json", t("JSON")]].map(([key, text]) =>
    h("button", { type: "button", id: `shape-${key}`, "aria-pressed": String(shape === key), onclick: () => { shape = key; showAnswer(query, answer); } }, text)));
  const keys = (query.get("order") ?? "").split(",");
  const can = new Set([...api.filters(api.endpoints.get(query.endpoint) ?? { list: new Map() }, (query.get("type") ?? "").split(",").filter(Boolean))].filter(([, [first]]) => first.orders).map(([name]) => name));
  const order = {
    can: (name) => can.has(name),
    now: (name) => (keys.includes(name) ? "" : keys.includes(`-${name}`) ? "-" : undefined),
    by: (name) => ask(query.with({ order: keys.includes(name) ? `-${name}` : name, offset: undefined })),
  };
  const shown = body === undefined ? h("pre", {}, answer.text) : shape === "json" ? h("div", { class: "json" }, json(api, body))
    : isList ? (body.items.length ? table(api, body.items, order) : h("p", { class: "quiet" }, t("Nothing found."))) : sheet(api, body);
  const failed = answer.status >= 400 && h("p", { class: "problem", id: "message", role: "alert" }, body?.message ?? answer.text.slice(0, 500));
  replace(answerPlace, facts(answer, api), failed, !failed && [h("div", { class: "row tools" }, shapes, copyTools(query, body)),
    isList && facets(body.meta?.facets, (name, value) => ask(query.with({ [name]: value, offset: undefined }))), shown, isList && pager(api, answer.header, Number(query.get("offset") ?? 0), body.items.length, total)]);
}

function copyTools(query, body) {
  const text = h("textarea", { class: "copied", readonly: true, hidden: true, rows: 8, "aria-label": t("Copy as") });
  const status = h("span", { role: "status", class: "quiet" });
  const copy = (make) => async () => {
    text.value = make(api.base + String(new Query(address())).replaceAll(" ", "%20"), api, api.endpoints.get(query.endpoint), body);
    text.hidden = false;
    text.rows = Math.min(text.value.split("\n").length + 1, 16);
    try {
      await navigator.clipboard.writeText(text.value);
      status.textContent = t("Copied.");
    } catch {
      text.select();
      status.textContent = t("Copy it from here.");
    }
  };
  return [h("div", { class: "copies", role: "group", "aria-label": t("Copy as") }, h("span", { "aria-hidden": "true" }, t("Copy as")), Object.entries(COPIES).map(([name, make]) => h("button", { type: "button", onclick: copy(make) }, t(name))), status), text];
}

try {
  api = await Description.read();
  addEventListener("hashchange", route);
  draw();
} catch (error) {
  replace(frame, h("p", { class: "problem", role: "alert" }, t("The description of the API cannot be read: {why}", { why: error.message })));
}
