// The query builder: controls that follow the query, and change it.

import { h, later, replace } from "./dom.js";
import { get, nameOf } from "./description.js";
import { Query } from "./query.js";
import * as selection from "./selection.js";
import { t } from "./words.js";

const OPERATORS = { "": "is", in: "is one of", not: "is none of", lt: "below", lte: "at most", gt: "above", gte: "at least", isnull: "is missing", startswith: "begins with" };
/** Inputs by kind. */
const INPUTS = {
  integer: { type: "number", step: 1 }, float: { type: "number", step: "any" }, decimal: { type: "number", step: "any" },
  date: { type: "date" }, time: { type: "time", step: 1 }, datetime: { type: "datetime-local", step: 1 },
};
const PLACES = ["locale", "site", "child_of", "descendant_of", "ancestor_of", "translation_of"];
const SEARCHES = ["search", "search_operator", "autocomplete", "limit", "offset"];
const WITH_OWN_CONTROL = ["type", "fields", "order", "_", ...PLACES, ...SEARCHES];

export class Builder {
  /** @param change is called with the query that a control makes of the present one. */
  constructor(api, change) {
    Object.assign(this, { api, change, place: h("form", { class: "builder", onsubmit: (event) => event.preventDefault() }), drafts: [], names: new Map() });
    // On small screens the answer should not be far below.
    this.opened = new Set(matchMedia("(max-width: 60rem)").matches ? [] : ["fields", "filters"]);
  }

  /** Shows a query, with the label of its object if it is one, and the error of the API if there is one. */
  show(query, label, problem) {
    if (query.endpoint !== this.query?.endpoint) this.drafts = [];
    Object.assign(this, { query, label, problem });
    this.endpoint = this.api.endpoints.get(query.endpoint);
    if (!this.endpoint) {
      replace(this.place, this._target());
      return;
    }
    this.known = { list: this.endpoint.list, detail: this.endpoint.detail, byPath: this.endpoint.byPath, find: this.endpoint.find }[query.view];
    this.labels = (query.get("type") ?? "").split(",").filter(Boolean).map((name) => this.endpoint.types.find((known) => known.toLowerCase() === name.toLowerCase()) ?? name);
    this.filters = query.view === "list" ? this.api.filters(this.endpoint, this.labels) : new Map();
    replace(this.place, this._target(), this._types(), this._fields(), this._filters(), this._order(),
      this._group("search", "Search and limit", SEARCHES), this._group("places", "Place, language, site", PLACES), this._more());
  }

  _set(changes) {
    // What is asked for otherwise begins at its first part again.
    const restart = "offset" in changes || !this.query.has("offset") ? {} : { offset: undefined };
    this.change(this.query.with({ ...restart, ...changes }));
  }

  // Parts.

  _section(key, title, ...content) {
    const names = { fields: ["fields"], order: ["order"], types: ["type"], search: SEARCHES, places: PLACES }[key] ?? [];
    const wrong = names.map((name) => this._problem(name)).filter(Boolean);
    const open = this.opened.has(key) || wrong.length > 0;
    return h("details", { class: "section", id: `section-${key}`, open, ontoggle: (event) => this.opened[event.target.open ? "add" : "delete"](key) },
      h("summary", { id: `summary-${key}` }, title), ["fields", "order", "types"].includes(key) && wrong, content);
  }

  /** What the API says about a parameter. */
  _problem(name) {
    const said = this.problem?.get(name);
    return said && h("p", { class: "problem", id: `problem-${name}`, role: "alert" }, said);
  }

  _flag(name) {
    return this.problem?.has(name) ? { "aria-invalid": "true", "aria-describedby": `problem-${name}` } : {};
  }

  _target() {
    const { query, api } = this;
    const views = [["list", "a list"], ["detail", "one by its id"], ...(this.endpoint?.byPath.size ? [["byPath", "one by its path"]] : []), ["find", "its address (find)"]];
    const to = (endpoint, view, id) => {
      const rest = { list: "", detail: `${id || 1}/`, byPath: "detail_by_path/", find: "find/" }[view];
      const kept = endpoint === query.endpoint ? query.pairs.filter(([name]) => ["fields", "site", "rich_text_format"].includes(name) && view !== "find") : [];
      const made = new Query(`/${endpoint}/${rest}`).with(Object.fromEntries(kept));
      this.change(view === "byPath" || (view === "find" && this.endpoint?.find.has("html_path")) ? made.with({ html_path: "/" }) : view === "find" ? made.with({ id: "1" }) : made);
    };
    return h("div", { class: "row" },
      field(t("Endpoint"), choice("endpoint", [...(this.endpoint ? [] : [["", t("choose …")]]), ...[...api.endpoints.keys()].map((name) => [name, name])], this.endpoint ? query.endpoint : "", (name) => to(name, "list"))),
      this.endpoint && field(t("What"), choice("view", views.map(([view, name]) => [view, t(name)]), query.view, (view) => to(query.endpoint, view))),
      query.view === "detail" && field(t("Id"), h("input", { id: "object-id", type: "text", inputmode: "numeric", size: 6, value: query.id, onchange: (event) => to(query.endpoint, "detail", event.target.value.replace(/\D/g, "")) })),
      ["html_path", "id"].filter((name) => query.view !== "list" && this.known?.has(name)).map((name) => [field(name, this._input(name, this.known.get(name))), this._problem(name)]));
  }

  _types() {
    if (!this.known.has("type")) return null;
    const { types } = this.endpoint;
    const toggle = (label, on) => {
      const kept = on ? [...this.labels, label] : this.labels.filter((known) => known !== label);
      this._set({ type: kept.join(",") || undefined });
    };
    const rows = types.map((label) => h("li", { "data-name": label.toLowerCase() }, tick(`type-${label}`, label, this.labels.includes(label), (on) => toggle(label, on))));
    const list = h("ul", { class: "ticks" }, rows);
    return this._section("types", [t("Types"), this.labels.length > 0 && h("span", { class: "count" }, `${this.labels.length} ${t("chosen")}`)], types.length > 12 && sieve("Find a type", list), list);
  }

  _fields() {
    if (!this.known.has("fields")) return null;
    const chosen = selection.parse(this.query.get("fields") ?? "");
    const isOne = this.query.view !== "list";
    const level = this.api.top(this.endpoint, isOne ? [this.label] : this.labels, isOne ? "detail" : "list");
    const done = () => this._set({ fields: selection.format(chosen) || undefined });
    return this._section("fields", t("Fields"), chosen && this._level(chosen, level, done, "fields", this.query.endpoint));
  }

  _level(chosen, level, done, key, name) {
    const base = choice(`${key}-base`, [["", t("the default fields")], ["*", t("all fields")], ["_", t("only what is ticked")]], chosen.base, (wanted) => {
      selection.startWith(chosen, wanted, level);
      done();
    });
    base.setAttribute("aria-label", `${t("Start with")}: ${name}`);
    const rows = [...level.fields.values()].map((one) => this._row(chosen, level, one, done, `${key}.${one.name}`));
    const list = h("ul", { class: "ticks fields", "aria-label": t("Fields of {name}", { name }) }, rows);
    return [h("div", { class: "base" }, base), level.fields.size > 20 && sieve("Find a field", list, key), list];
  }

  _row(chosen, level, one, done, key) {
    const on = selection.isShown(chosen, one, level);
    const shown = h("span", { class: `kind${one.endpoint ? " leads" : ""}` }, (one.many ? `${t("list")}: ` : "") + (one.endpoint ? `→ ${one.endpoint}` : t(one.kind)));
    const box = tick(key, [one.inMeta && h("span", { class: "meta" }, "meta."), one.name, " ", shown], on, (wanted) => {
      selection.show(chosen, one, level, wanted);
      done();
    });
    if (!one.inner) return h("li", { "data-name": one.name }, box);
    const given = chosen.added.get(one.name);
    const isOpen = this.opened.has(key) || (given && format(given));
    const inner = given ?? selection.nothing();
    const content = () => this._level(inner, this.api.inside(one), () => {
      selection.select(chosen, one, level, inner);
      done();
    }, key, one.name);
    const details = h("details", { class: "inside", open: Boolean(isOpen), ontoggle: ({ target }) => {
      this.opened[target.open ? "add" : "delete"](key);
      if (target.open && target.children.length === 1) target.append(...content().filter(Boolean));
    } }, h("summary", { id: `${key}-inside`, "aria-label": t("Fields of {name}", { name: one.name }) }, ""));
    if (isOpen) details.append(...content().filter(Boolean));
    return h("li", { "data-name": one.name }, box, details);
  }

  _filters() {
    if (this.query.view !== "list") return null;
    const all = [...this.filters.values()].flat();
    const given = this.query.pairs.map(([name]) => name).filter((name, place, names) => names.indexOf(name) === place && all.some((filter) => filter.parameter === name));
    const rows = [...new Set([...given, ...this.drafts])].map((name) => {
      const filter = all.find((one) => one.parameter === name);
      return filter && this._filter(filter, this.filters.get(filter.field));
    });
    const add = choice("add-filter", [["", t("Add a filter")], ...[...this.filters.keys()].map((name) => [name, name])], "", (name) => {
      const [first] = this.filters.get(name);
      if (first.kind === "boolean") this._set({ [first.parameter]: "true" });
      else {
        this.drafts.push(first.parameter);
        this.show(this.query, this.label, this.problem);
        document.getElementById(`value-${first.parameter}`)?.focus();
      }
    });
    add.setAttribute("aria-label", t("Add a filter"));
    return this._section("filters", [t("Filters"), given.length > 0 && h("span", { class: "count" }, given.length)], rows, add);
  }

  _filter(filter, others) {
    const { parameter } = filter;
    const value = this.query.get(parameter);
    const names = others.map((one) => [one.parameter, t(one.operator === "" && /^(tags|relations)$/.test(one.kind) ? "has all of" : OPERATORS[one.operator] ?? one.operator)]);
    const operator = choice(`operator-${filter.field}-${parameter}`, names, parameter, (wanted) => {
      this.drafts = this.drafts.filter((name) => name !== parameter);
      const next = others.find((one) => one.parameter === wanted);
      const kept = (next.operator === "isnull") !== (filter.operator === "isnull") ? undefined : value;
      if (next.operator === "isnull") this._set({ [parameter]: undefined, [wanted]: "true" });
      else {
        if (kept === undefined) this.drafts.push(wanted);
        this.change(this.query.with({ [parameter]: undefined, [wanted]: kept }));
      }
    });
    operator.setAttribute("aria-label", `${t("Comparison")}: ${filter.field}`);
    return h("div", { class: "filter", "data-name": parameter },
      h("div", { class: "grid" }, h("strong", {}, filter.field), this._remove(parameter), operator, this._value(filter, value)), this._problem(parameter));
  }

  _value({ parameter, operator, kind, endpoint }, value) {
    const set = (given) => {
      this.drafts = this.drafts.filter((name) => name !== parameter);
      this._set({ [parameter]: given === "" ? undefined : given });
    };
    const label = t("Value of {name}", { name: parameter });
    const several = operator === "in" || operator === "not" || /^(tags|relations)$/.test(kind);
    if (operator === "isnull" || (kind === "boolean" && !several)) return tick(`value-${parameter}`, value === "false" ? t("no") : t("yes"), value !== "false", (on) => set(String(on)), label);
    if (endpoint && operator !== "isnull") return this._picker(parameter, endpoint, value, several, set, label);
    return this._plain(parameter, several ? "text" : kind, value, set, { "aria-label": label, placeholder: several ? t("several, with commas") : null });
  }

  _plain(name, kind, value, set, more) {
    const isMoment = kind === "datetime";
    const read = (text) => (isMoment && text && made.type !== "text" ? `${text.length < 19 ? `${text}:00` : text}Z` : text);
    const made = h("input", { id: `value-${name}`, type: "text", ...INPUTS[kind], title: isMoment ? "UTC" : null, ...more, ...this._flag(name), onchange: () => set(read(made.value)) });
    made.value = (isMoment ? value?.replace(/Z$/, "") : value) ?? "";
    // What it cannot show is shown as text.
    if (value && !made.value) Object.assign(made, { type: "text", value });
    return made;
  }

  /** Searches objects by title; the value is their ids. */
  _picker(name, endpoint, value, several, set, label, home = false) {
    const ids = (value ?? "").split(",").filter(Boolean);
    const found = h("ul", { class: "found" });
    const choose = (id) => set(several ? [...new Set([...ids, id])].join(",") : String(id));
    const option = (id, text) => h("li", {}, h("button", { type: "button", onclick: () => choose(id) }, text));
    const look = later(async (text) => {
      const known = this.api.endpoints.get(endpoint).list;
      const wanted = known.has("autocomplete") && text ? `?limit=8&autocomplete=${encodeURIComponent(text)}` : "?limit=8";
      const byId = /^\d+$/.test(text) ? [option(text, `#${text}`)] : [];
      const answer = await get(`/${endpoint}/${wanted}`);
      const items = answer.body?.items ?? [];
      for (const item of items) this.names.set(`${endpoint}/${item.id}`, nameOf(item));
      found.replaceChildren(...(home ? [option("root", t("the home page"))] : []), ...byId, ...items.map((item) => option(item.id, [nameOf(item), h("small", {}, ` #${item.id}`)])), ...(items.length + byId.length ? [] : [h("li", { class: "quiet" }, t("Nothing found."))]));
    });
    const chips = ids.map((id) => h("button", { type: "button", class: "chip", "aria-label": t("Remove {name}", { name: id }), onclick: () => set(ids.filter((own) => own !== id).join(",")) }, this._called(endpoint, id), " ×"));
    const box = h("input", { id: `value-${name}`, type: "search", autocomplete: "off", placeholder: t("Search by title"), "aria-label": label, ...this._flag(name), oninput: (event) => look(event.target.value), onfocus: () => look("") });
    return h("div", { class: "picker" }, chips, (several || !ids.length) && box, found);
  }

  /** The name of an object, which is asked for if it is not known. */
  _called(endpoint, id) {
    if (id === "root") return t("the home page");
    const key = `${endpoint}/${id}`;
    const shown = h("span", {}, this.names.get(key) ?? `#${id}`);
    if (!this.names.has(key) && /^\d+$/.test(id)) {
      this.names.set(key, `#${id}`);
      get(`/${key}/`).then(({ status, body }) => {
        if (status === 200) this.names.set(key, nameOf(body));
        shown.textContent = this.names.get(key);
      }, () => {});
    }
    return shown;
  }

  _order() {
    if (!this.known.has("order")) return null;
    const keys = (this.query.get("order") ?? "").split(",").filter(Boolean);
    const known = [...this.filters].filter(([, [first]]) => first.orders).map(([name]) => name);
    const set = (wanted) => this._set({ order: wanted.join(",") || undefined });
    const rows = keys.map((key, place) => {
      const name = key.replace(/^-/, "");
      const direction = choice(`direction-${name}`, [["", t("ascending")], ["-", t("descending")]], key.startsWith("-") ? "-" : "", (sign) => set(keys.with(place, sign + name)));
      direction.setAttribute("aria-label", t("Direction of {name}", { name }));
      return h("div", { class: "row" }, h("strong", {}, key === "random" ? t("random") : name), key !== "random" && direction, this._removeButton(name, () => set(keys.toSpliced(place, 1))));
    });
    const add = choice("add-order", [["", t("Add an order")], ...known.map((name) => [name, name]), ["random", t("random")]], "", (name) => set(name === "random" ? [name] : [...keys.filter((key) => key !== "random"), name]));
    add.setAttribute("aria-label", t("Add an order"));
    return this._section("order", [t("Order"), keys.length > 0 && h("span", { class: "count" }, keys.length)], rows, add);
  }

  _group(key, title, names) {
    const shown = names.filter((name) => this.known.has(name));
    if (!shown.length) return null;
    const given = shown.filter((name) => this.query.has(name)).length;
    return this._section(key, [t(title), given > 0 && h("span", { class: "count" }, given)], shown.map((name) => this._control(name, this.known.get(name))));
  }

  _control(name, parameter) {
    return h("div", { class: "control" }, h("label", { for: `value-${name}`, title: parameter.description }, name), this._input(name, parameter), this._problem(name));
  }

  /** The input for a parameter that is no filter, by its schema. */
  _input(name, { schema, description }) {
    const value = this.query.get(name);
    const set = (given) => this._set({ [name]: given === "" ? undefined : given });
    const { index } = this.api;
    const sites = (index.sites ?? []).map((site) => `${site.hostname}:${site.port}`);
    const values = { locale: index.locales, site: sites }[name] ?? schema.enum;
    if (values?.length) return choice(`value-${name}`, ["", ...new Set([...values, ...(value ? [value] : [])])].map((one) => [one, one || "–"]), value ?? "", set, { title: description, ...this._flag(name) });
    if (PLACES.includes(name) && schema.anyOf) return this._picker(name, this.query.endpoint, value, false, set, name, schema.anyOf.some((one) => one.const === "root"));
    return this._plain(name, schema.type, value, set, { title: description, min: schema.minimum, max: schema.maximum });
  }

  /** Other parameters, and what the address has that no control shows. */
  _more() {
    const isFilter = (name) => [...this.filters.values()].flat().some((filter) => filter.parameter === name);
    const own = [...this.known.values()].filter(({ name, ...rest }) => !rest["x-filters"] && !WITH_OWN_CONTROL.includes(name) && !["id", "html_path"].includes(name));
    const unknown = [...new Set(this.query.pairs.map(([name]) => name))].filter((name) => !isFilter(name) && !WITH_OWN_CONTROL.includes(name) && !(this.known.has(name) && !this.known.get(name)["x-filters"]));
    const given = own.filter(({ name }) => this.query.has(name)).length;
    if (unknown.length || own.some(({ name }) => this.problem?.has(name))) this.opened.add("more");
    return this._section("more", [t("More"), given + unknown.length > 0 && h("span", { class: "count" }, given + unknown.length)], own.map((parameter) => (parameter.name === "facets" ? this._facets() : this._control(parameter.name, parameter))),
      unknown.length > 0 && h("p", { class: "quiet" }, t("Only in the address")),
      unknown.map((name) => h("div", { class: "filter", "data-name": name }, h("div", { class: "grid" }, h("strong", {}, name), this._remove(name), h("code", {}, this.query.get(name))), this._problem(name))));
  }

  _facets() {
    const names = (this.query.get("facets") ?? "").split(",").filter(Boolean);
    const set = (wanted) => this._set({ facets: wanted.join(",") || undefined });
    const known = [...this.filters].filter(([, [first]]) => !first.operator).map(([name]) => name);
    if (this.known.has("child_of")) known.push("type");
    const add = choice("value-facets", [["", t("Add a facet")], ...known.map((name) => [name, name])], "", (name) => set([...new Set([...names, name])]));
    return h("div", { class: "control" }, h("label", { for: "value-facets" }, "facets"), h("div", { class: "row" }, names.map((name) => h("button", { type: "button", class: "chip", "aria-label": t("Remove {name}", { name }), onclick: () => set(names.filter((own) => own !== name)) }, name, " ×")), add), this._problem("facets"));
  }

  _remove(name) {
    return this._removeButton(name, () => {
      this.drafts = this.drafts.filter((draft) => draft !== name);
      this.query.has(name) ? this._set({ [name]: undefined }) : this.show(this.query, this.label, this.problem);
    });
  }

  _removeButton(name, onclick) {
    return h("button", { type: "button", class: "plain", "aria-label": t("Remove {name}", { name }), onclick }, "×");
  }
}

const { format } = selection;

/** What the API says about each parameter of a query that it refuses: names to messages. */
export function problems(query, message) {
  const found = new Map();
  const words = { locale: /\blanguage\b/, site: /\bsite\b/, type: /\btype\b/ };
  const names = [...new Set(query.pairs.map(([name]) => name))];
  const unknown = /^Unknown parameter: (.*?)\.( |$)/.exec(message)?.[1].split(", ");
  for (const name of unknown ?? []) found.set(name, message);
  for (const part of unknown ? [] : parts(message, names)) {
    const starts = names.filter((name) => part.startsWith(`${name} `));
    const named = starts.length ? starts : names.filter((name) => part.replaceAll(/['":,.]/g, " ").split(" ").includes(name));
    for (const name of named.length ? named : names.filter((name) => words[name]?.test(part))) found.set(name, part);
  }
  return found;
}

/** The parts of a message: each begins with a name, and may have a semicolon of its own. */
function parts(message, names) {
  return message.split("; ").reduce((made, text) => {
    const isOwn = !made.length || names.some((name) => text.startsWith(`${name} `));
    return isOwn ? [...made, text] : [...made.slice(0, -1), `${made.at(-1)}; ${text}`];
  }, []);
}

// Small controls.

function field(label, control) {
  return h("label", { class: "field" }, h("span", {}, label), control);
}

function choice(id, options, value, choose, more = {}) {
  const made = h("select", { id, ...more, onchange: (event) => choose(event.target.value) }, options.map(([key, name]) => h("option", { value: key }, name)));
  made.value = value;
  return made;
}

function tick(id, label, checked, change, described) {
  return h("label", { class: "tick" }, h("input", { id, type: "checkbox", checked, "aria-label": described, onchange: (event) => change(event.target.checked) }), h("span", {}, label));
}

/** A box that hides the entries of a list without its text. */
function sieve(text, list, key = "") {
  return h("input", { id: `sieve-${text}-${key}`, type: "search", class: "sieve", placeholder: t(text), "aria-label": t(text), oninput: (event) => {
    for (const entry of list.children) entry.hidden = !entry.dataset.name.includes(event.target.value.toLowerCase());
  } });
}
