// A query: a path below the API and its parameters, as they are in the page's own address.

const READABLE = { "%20": " ", "%2C": ",", "%28": "(", "%29": ")", "%2A": "*", "%3A": ":", "%2F": "/" };
const encode = (text) => encodeURIComponent(text).replace(/%(2C|28|29|2A|3A|2F)/g, (code) => READABLE[code]);

export class Query {
  /** @param text a path with a query string, as `/pages/?limit=5`. */
  constructor(text) {
    const place = text.indexOf("?");
    this.path = place < 0 ? text : text.slice(0, place);
    this.pairs = place < 0 ? [] : [...new URLSearchParams(text.slice(place + 1))];
    const [, endpoint = "", rest = ""] = /^\/([^/]*)\/?(.*?)\/?$/.exec(this.path) ?? [];
    this.endpoint = endpoint;
    this.view = { "": "list", find: "find", detail_by_path: "byPath" }[rest] ?? "detail";
    this.id = this.view === "detail" ? rest : "";
  }

  get(name) {
    return this.pairs.findLast(([own]) => own === name)?.[1];
  }

  has(name) {
    return this.pairs.some(([own]) => own === name);
  }

  /** The same query with other values; undefined takes a parameter away. */
  with(changes) {
    const made = new Query(this.path);
    const left = { ...changes };
    for (const [name, value] of this.pairs) {
      if (!(name in changes)) made.pairs.push([name, value]);
      else if (left[name] !== undefined) made.pairs.push([name, left[name]]);
      delete left[name];
    }
    made.pairs.push(...Object.entries(left).filter(([, value]) => value !== undefined));
    return made;
  }

  toString() {
    const text = this.pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
    return this.path + (text && `?${text}`);
  }
}
