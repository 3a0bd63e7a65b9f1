// The answer to a query: as a table, and as JSON that can be folded and whose addresses lead on.

import { h, isAddress, outward } from "./dom.js";
import { links, nameOf, pictureIn } from "./description.js";
import { t } from "./words.js";

/** A link to what an address of the API answers with, here; others lead out. */
export function lead(api, address, ...children) {
  const path = api.path(address);
  if (path === null) return outward(address, ...children);
  const [, endpoint, rest] = path.split("/");
  const site = api.site && rest && !path.includes("?") && api.endpoints.get(endpoint)?.detail.has("site") ? `?site=${encodeURIComponent(api.site)}` : "";
  return h("a", { href: `#${path}${site}` }, children.length ? children : [address]);
}

const bytes = (size) => (size < 1000 ? `${size} B` : `${(size / 1000).toFixed(1)} kB`);

/** Status, time, size, ETag and cache tags. */
export function facts({ status, ms, size, header, moved }, api) {
  const tags = header("Cache-Tag") ?? header("Surrogate-Key");
  const shown = [
    [t("Status"), h("span", { class: status < 400 ? "good" : "bad" }, status)], [t("Time"), `${ms.toFixed(0)} ms`], [t("Size"), bytes(size)],
    ["ETag", header("ETag") && h("code", {}, header("ETag").replaceAll('"', ""))], ["Cache-Control", header("Cache-Control")], [t("Cache tags"), tags],
    [t("Address"), moved && t("Moved to {path}", { path: api.path(moved) ?? moved })],
  ];
  return h("dl", { class: "facts" }, shown.filter(([, value]) => value).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** The previous and the next part of a list. */
export function pager(api, header, offset, count, total, to = (path) => `#${path}`) {
  const found = links(header("Link"));
  const step = (rel, text) => (found[rel] && api.path(found[rel]) ? h("a", { href: to(api.path(found[rel])), rel }, text) : h("span", { class: "off" }, text));
  const place = total === undefined ? "" : t("{from} to {to} of {total}", { from: count ? offset + 1 : 0, to: count ? offset + count : 0, total });
  return h("nav", { class: "pager", "aria-label": t("Pages of the answer") }, step("prev", `‹ ${t("Previous")}`), h("span", {}, place), step("next", `${t("Next")} ›`));
}

/** How often each value of a facet occurs; a value adds its filter. */
export function facets(found, choose) {
  return Object.entries(found ?? {}).map(([name, values]) => h("div", { class: "facet" }, h("strong", {}, name),
    values.map(({ value, count }) => h("button", { type: "button", class: "chip", onclick: () => choose(name, String(value)) }, String(value) || "–", h("small", {}, ` ${count}`)))));
}

// The table.

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function short(api, object) {
  const picture = pictureIn(object);
  const name = nameOf(object) || (object.meta?.type ?? "");
  const address = object.meta?.detail_url;
  return [picture && h("img", { src: picture, alt: "", loading: "lazy", class: "thumb" }), api.path(address) === null ? h("span", {}, name) : lead(api, address, name)];
}

const NAMING = ["id", "title", "name", "meta.type", "meta.detail_url", "meta.html_url", "meta.download_url"];

/** What an object that does not lead on has besides its name, in short. */
function details(object) {
  const rest = flat(object).filter(([name]) => !NAMING.includes(name)).slice(0, 6);
  return rest.length > 0 && h("small", { class: "details" }, rest.map(([name, value]) => h("span", {}, `${name.replace(/^meta\./, "")}: `,
    isObject(value) ? nameOf(value) || "{…}" : Array.isArray(value) ? `[${value.length}]` : String(value ?? "–").slice(0, 80))));
}

function cell(api, value, name) {
  if (value === null) return h("span", { class: "quiet" }, "–");
  if (Array.isArray(value)) {
    const shown = value.slice(0, 8).map((one) => h("span", { class: "chip still" }, isObject(one) ? short(api, one.value !== undefined && one.type ? { title: one.type } : one) : String(one)));
    return [shown, value.length > 8 && ` … ${value.length}`];
  }
  if (isObject(value)) return [h("div", { class: "object" }, short(api, value)), !value.meta?.detail_url && details(value)];
  if (isAddress(value)) {
    const text = api.path(value) ?? (value.replace(/^https?:\/\/[^/]+/, "") || value);
    return [name === "download_url" && pictureIn({ meta: { download_url: value } }) && h("img", { src: value, alt: "", loading: "lazy", class: "thumb" }), lead(api, value, text)];
  }
  const text = String(value);
  if (text.length <= 30) return text;
  return h("div", { class: "long", title: text.length > 140 ? text.slice(0, 1000) : null }, text.length > 140 ? `${text.slice(0, 140)}…` : text);
}

const flat = (item) => Object.entries(item).flatMap(([name, value]) => (name === "meta" && isObject(value) ? Object.entries(value).map(([key, inner]) => [`meta.${key}`, inner]) : [[name, value]]));

/** Items as a table; `order` is given the name of a column, and says by which ones it can. */
export function table(api, items, order) {
  const rows = items.map((item) => new Map(flat(isObject(item) ? item : { "": item })));
  const names = [...new Set(rows.flatMap((row) => [...row.keys()]))];
  const rank = (name) => (name === "id" ? 0 : ["title", "name"].includes(name) ? 1 : name.startsWith("meta.") ? 3 : 2);
  names.sort((a, b) => rank(a) - rank(b));
  const heading = (name) => {
    const own = name.replace(/^meta\./, "");
    const sign = order?.now(own);
    const shown = order?.can(own) ? h("button", { type: "button", id: `order-${own}`, title: t("Order by {name}", { name: own }), onclick: () => order.by(own) }, own, { "": " ↑", "-": " ↓" }[sign] ?? "") : own;
    return h("th", { scope: "col", "aria-sort": { "": "ascending", "-": "descending" }[sign] }, shown);
  };
  const inside = (row, name) => {
    const shown = cell(api, row.get(name), name.replace(/^meta\./, ""));
    const address = row.get("meta.detail_url");
    return ["title", "name", "old_path"].includes(name) && row.get(name) && api.path(address) !== null ? lead(api, address, shown) : shown;
  };
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": t("Table") }, h("table", {}, h("thead", {}, h("tr", {}, names.map(heading))),
    h("tbody", {}, rows.map((row) => h("tr", {}, names.map((name) => h("td", { class: typeof row.get(name) === "number" ? "number" : null }, row.has(name) ? inside(row, name) : "")))))));
}

/** One object as a table, a field a row. */
export function sheet(api, object) {
  const picture = pictureIn(object);
  return [picture && h("img", { src: picture, alt: nameOf(object), class: "large" }),
    h("table", { class: "sheet" }, h("tbody", {}, flat(object).map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, cell(api, value, name.replace(/^meta\./, "")))))))];
}

// JSON.

function scalar(api, value, name) {
  if (typeof value !== "string") return h("span", { class: value === null ? "null" : typeof value }, String(value));
  if (isAddress(value)) {
    const shown = name === "download_url" && pictureIn({ meta: { download_url: value } });
    return h("span", { class: "string" }, '"', lead(api, value), '"', shown && h("img", { src: value, alt: "", loading: "lazy", class: "thumb" }));
  }
  return h("span", { class: "string" }, JSON.stringify(value));
}

/** A value as JSON. What is folded is made when it is opened. */
export function json(api, value, depth = 0, name = null) {
  const key = typeof name === "string" ? [h("span", { class: "key" }, JSON.stringify(name)), ": "] : [];
  if (value === null || typeof value !== "object") return h("div", {}, key, scalar(api, value, name));
  const entries = Array.isArray(value) ? value.map((one, place) => [place, one]) : Object.entries(value);
  const [left, right] = Array.isArray(value) ? "[]" : "{}";
  if (!entries.length) return h("div", {}, key, left + right);
  const about = Array.isArray(value) ? t("{n} entries", { n: entries.length }) : nameOf(value) || t("{n} keys", { n: entries.length });
  const inner = () => [h("div", { class: "inner" }, entries.map(([own, one]) => json(api, one, depth + 1, own))), h("div", {}, right)];
  const isOpen = depth < 4 && entries.length <= 200;
  const made = h("details", { open: isOpen, ontoggle: () => made.open && made.children.length === 1 && made.append(...inner()) }, h("summary", {}, key, left, h("span", { class: "about" }, ` ${about} `, right)));
  if (isOpen) made.append(...inner());
  return made;
}
