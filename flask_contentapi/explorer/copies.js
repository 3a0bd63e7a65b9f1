// A query as something to copy: its address, commands, code, and the type of its answer.

const quoted = (text) => JSON.stringify(text);

/** The ways to copy a query: names to functions of its address, the description and the answer. */
export const COPIES = {
  "Address": (address) => address,
  "curl": (address) => `curl '${address.replaceAll("'", "%27")}'`,
  "fetch": (address) => `const response = await fetch(\n  ${quoted(address)},\n);\nif (!response.ok) throw new Error((await response.json()).message);\nconst data = await response.json();`,
  "Python": (address) => {
    const { origin, pathname, searchParams } = new URL(address);
    const pairs = [...searchParams].map(([name, value]) => `    ${quoted(name)}: ${quoted(value)},\n`).join("");
    return `import requests\n\nresponse = requests.get(\n    ${quoted(origin + pathname)},\n    params={\n${pairs.replaceAll(/^/gm, "    ").trimEnd()}\n    },\n    timeout=10,\n)\nresponse.raise_for_status()\ndata = response.json()`.replace("    params={\n\n    },\n", "");
  },
  "TypeScript type": (address, api, endpoint, body) => typed(api, endpoint, body),
};

/** The keys are those of the answer, their types those of the description. */
function typed(api, endpoint, body) {
  const labels = new Set((body?.items ?? [body]).map((one) => one?.meta?.type));
  const own = endpoint?.schemas.find(([label]) => labels.size === 1 && labels.has(label));
  const item = own?.[1] ?? endpoint?.shared;
  if (body === null || typeof body !== "object") return "type Answer = unknown;";
  if (!Array.isArray(body.items)) return `type Answer = ${typeOf(api, [body], item, "")};`;
  const total = "total_count" in (body.meta ?? {}) ? "{ total_count: number }" : "Record<string, unknown>";
  return `type Item = ${body.items.length ? typeOf(api, body.items, item, "") : "unknown"};\n\ntype Answer = { meta: ${total}; items: Item[] };`;
}

function typeOf(api, values, schema, indent) {
  const own = api.resolve(schema) ?? {};
  const variants = (own.anyOf ?? [own]).map((one) => api.resolve(one));
  const isNull = values.includes(null) || variants.some((one) => [one.type].flat().includes("null"));
  const there = values.filter((value) => value !== null && value !== undefined);
  const possible = variants.filter((one) => one.type !== "null");
  const options = possible.every((one) => one.enum) ? possible.flatMap((one) => one.enum).filter((value) => value !== null) : [];
  let made;
  if (there.some(Array.isArray)) {
    const items = variants.find((one) => one.items)?.items;
    const inner = there.flat();
    made = inner.length ? `(${typeOf(api, inner, items, indent)})[]` : items?.type === "string" ? "string[]" : "unknown[]";
    made = made.replace(/^\((\w+)\)\[\]$/, "$1[]");
  } else if (there.some((value) => typeof value === "object")) {
    const properties = Object.assign({}, ...variants.map((one) => one.properties));
    const names = [...new Set(there.flatMap(Object.keys))];
    const lines = names.map((name) => {
      const inner = there.filter((value) => name in value).map((value) => value[name]);
      const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name);
      return `${indent}  ${key}${inner.length < there.length ? "?" : ""}: ${typeOf(api, inner, properties[name], `${indent}  `)};\n`;
    });
    made = `{\n${lines.join("")}${indent}}`;
  } else if (!there.length && !schema?.$ref && possible[0]?.properties && !schema?.anyOf) {
    // Nothing is there, as where a relation is missing everywhere: the description alone says what could be.
    const { properties, required = [] } = possible[0];
    const lines = Object.entries(properties).map(([name, inner]) => `${indent}  ${name}${required.includes(name) ? "" : "?"}: ${typeOf(api, [], inner, `${indent}  `)};\n`);
    made = `{\n${lines.join("")}${indent}}`;
  } else if (options.length && options.length <= 12 && there.every((value) => options.includes(value))) {
    made = options.map((value) => quoted(value)).join(" | ");
  } else {
    const told = variants.flatMap((one) => one.type ?? []).map((name) => ({ integer: "number", number: "number", string: "string", boolean: "boolean" })[name]);
    const names = new Set([...there.map((value) => typeof value), ...told.filter(Boolean)]);
    made = [...names].join(" | ") || "unknown";
  }
  return isNull && made !== "unknown" ? `${made} | null` : made;
}
