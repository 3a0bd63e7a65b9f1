// The API as its index and its description tell it.

/** The address below which the API is; the page itself is at `explorer/` in it. */
export const root = new URL("../", location.href.split(/[?#]/)[0]);

/** A kind of value, and what it leads to. */
const SCALARS = { boolean: "boolean", integer: "integer", number: "number", string: "text", object: "object" };

export class Description {
  static async read() {
    const [index, document] = await Promise.all(["", "openapi.json"].map((path) => ask(new URL(path, root))));
    return new Description(index, document);
  }

  constructor(index, document) {
    this.index = index;
    this.title = document.info.title;
    this.base = document.servers[0].url;
    this._schemas = document.components.schemas;
    this._endpointOf = new Map();
    this.endpoints = new Map();
    for (const [name, { types }] of Object.entries(index.endpoints)) {
      const operation = document.paths[`/${name}/`].get;
      const list = this.resolve(operation.responses[200].content["application/json"].schema);
      const item = this.resolve(list.properties.items.items);
      const shared = item.anyOf.at(-1);
      for (const { $ref } of item.anyOf) this._endpointOf.set($ref, name);
      const parameters = (path) => new Map((document.paths[`/${name}/${path}`]?.get.parameters ?? []).filter((p) => p.in === "query").map((p) => [p.name, p]));
      this.endpoints.set(name, {
        name, types, shared,
        schemas: Object.entries(item.discriminator.mapping).map(([label, $ref]) => [label, { $ref }]),
        list: parameters(""), detail: parameters("{id}/"), byPath: parameters("detail_by_path/"), find: parameters("find/"),
      });
    }
  }

  resolve(schema) {
    return schema?.$ref ? this._schemas[schema.$ref.split("/").at(-1)] : schema;
  }

  /** The kind of a value: {kind, many, endpoint, inner, options}. */
  kind(schema, many = false) {
    const found = (schema.anyOf ?? [schema]).filter((one) => one.type !== "null");
    const [one] = found;
    if (found.length !== 1 && !found.every((other) => other.enum)) return { kind: "any", many };
    if (one.$ref) {
      const endpoint = this._endpointOf.get(one.$ref);
      const isChild = "meta" in (this.resolve(one).properties ?? {});
      return { kind: endpoint ?? "objects", endpoint, many, inner: endpoint || isChild ? one : null };
    }
    const type = [one.type].flat().find((name) => name && name !== "null");
    if (type === "array") return this.kind(one.items ?? {}, true);
    if (found.some((other) => other.enum)) return { kind: "choice", many };
    return { kind: one.format ?? SCALARS[type] ?? "any", many };
  }

  /** The fields of objects: {fields, defaults}; a field is {name, schema, kind, many, …}. */
  level(schemas, view, isUnion = false) {
    const types = schemas.map((schema) => this._fields(schema));
    const names = [...new Set(types.flatMap((fields) => [...fields.keys()]))];
    const shared = names.filter((name) => isUnion || types.every((fields) => fields.has(name)));
    const all = shared.map((name) => types.find((own) => own.has(name)).get(name));
    const fields = new Map(all.filter((field) => view === "detail" || !field.detailOnly).map((field) => [field.name, field]));
    const isDefault = { list: (f) => f?.always, detail: (f) => f && !f.namedOnly, nested: (f) => f?.nested }[view];
    const test = view === "detail" ? "some" : "every";
    return { fields, defaults: new Set([...fields.keys()].filter((name) => types[test]((own) => isDefault(own.get(name))))) };
  }

  /** The level of a query's own fields. */
  top(endpoint, labels, view) {
    const chosen = endpoint.schemas.filter(([label]) => labels.includes(label));
    const schemas = (chosen.length ? chosen : endpoint.schemas).map(([, schema]) => schema);
    return this.level(schemas.length ? schemas : [endpoint.shared], view, chosen.length > 1 || (view === "detail" && !chosen.length));
  }

  /** The level in the brackets of a field. */
  inside(field) {
    return this.level([field.inner], "nested");
  }

  _fields(schema) {
    const own = this.resolve(schema);
    const said = own["x-fields"];
    const meta = this.resolve(own.properties.meta) ?? {};
    const groups = [[own, false], [meta, true]];
    const fields = groups.flatMap(([{ properties = {}, required = [] }, inMeta]) =>
      Object.entries(properties).filter(([name]) => inMeta || name !== "meta").map(([name, value]) => [name, {
        name, inMeta, schema: value, ...this.kind(value), always: required.includes(name),
        nested: !said || said.nested.includes(name), detailOnly: said?.detail_only.includes(name), namedOnly: said?.named_only.includes(name),
      }]));
    const first = (name) => (name === "id" ? 0 : name === "title" ? 1 : 2);
    return new Map(fields.sort(([a], [b]) => first(a) - first(b)));
  }

  /** The filters that a list has: names of fields, each with its parameters. */
  filters(endpoint, labels) {
    const found = new Map();
    for (const parameter of endpoint.list.values()) {
      for (const filter of parameter["x-filters"] ?? []) {
        const fits = !filter.types.length || (labels.length === 1 && filter.types.includes(labels[0]));
        if (fits) found.set(filter.field, [...(found.get(filter.field) ?? []), { ...filter, parameter: parameter.name }]);
      }
    }
    return found;
  }

  /** The path in the API of an address that an answer gives; null if it leads elsewhere. */
  path(address) {
    for (const base of [`${this.base}/`, root.href]) {
      if (typeof address === "string" && address.startsWith(base)) return `/${address.slice(base.length)}`;
    }
    return null;
  }
}

async function ask(address) {
  const response = await fetch(address, { headers: { Accept: "application/json" } });
  if (!response.ok) throw Error(`${response.status} ${address}`);
  return response.json();
}

/** Asks for a path: {status, body, ms, size, header, moved}; body is undefined if it is no JSON. */
export async function get(path, signal) {
  const address = new URL(`.${path}`, root);
  if (!address.href.startsWith(root.href)) throw Error(path);
  const begun = performance.now();
  const response = await fetch(address, { signal, headers: { Accept: "application/json" } });
  const text = await response.text();
  const ms = performance.now() - begun;
  let body;
  try {
    body = JSON.parse(text);
  } catch { /* such as ndjson */ }
  return {
    status: response.status, ms, body, text, size: new Blob([text]).size, header: (name) => response.headers.get(name),
    moved: response.redirected ? response.url : null,
  };
}

/** The `next` and `prev` of a `Link` header. */
export function links(header) {
  const found = [...(header ?? "").matchAll(/<([^>]*)>; rel="(\w+)"/g)];
  return Object.fromEntries(found.map(([, address, rel]) => [rel, address]));
}

/** What an object is called. */
export function nameOf(object) {
  const texts = [object?.title, object?.name, object?.old_path].filter((text) => typeof text === "string" && text);
  return texts[0] ?? (object?.id === undefined ? "" : `#${object.id}`);
}

/** The picture in an object; null if it is none. */
export function pictureIn(object) {
  const address = object?.meta?.download_url;
  const isImage = typeof object?.width === "number" || /\.(avif|gif|jpe?g|png|svg|webp)$/i.test(address ?? "");
  return isImage && address ? address : null;
}
