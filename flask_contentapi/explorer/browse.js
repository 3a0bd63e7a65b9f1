// The content to look through: the tree of pages, the wall of images, and tables of the rest.

import { facts, pager, table } from "./answer.js";
import { h, isAddress, later, outward, replace } from "./dom.js";
import { get, nameOf, pictureIn } from "./description.js";
import { Query } from "./query.js";
import { t } from "./words.js";

const NAMES = { pages: "Pages", images: "Images", documents: "Documents", redirects: "Redirects" };
export const titleOf = (endpoint) => (NAMES[endpoint] ? t(NAMES[endpoint]) : endpoint);

/** The page for an endpoint. `query` has what is chosen; `change` is called with another one. */
export function browse(api, query, change) {
  const endpoint = api.endpoints.get(query.endpoint) ?? api.endpoints.get("pages");
  const tabs = h("nav", { class: "tabs", "aria-label": t("Content") }, [...api.endpoints.keys()].sort((a, b) => (b === "pages") - (a === "pages")).map((name) =>
    h("a", { href: `#browse/${name}/`, "aria-current": name === endpoint.name ? "page" : null }, titleOf(name))));
  const content = endpoint.name === "pages" ? tree(api, endpoint, query, change) : list(api, endpoint, query, change);
  return [h("h1", {}, titleOf(endpoint.name)), tabs, content];
}

function problem(answer) {
  return h("p", { class: "problem", role: "alert" }, answer.body?.message ?? `${t("Status")} ${answer.status}`);
}

// The tree.

function tree(api, endpoint, query, change) {
  const place = h("div", { class: "tree", "aria-busy": "true" }, h("p", { class: "quiet" }, t("Loading …")));
  const site = query.get("site");
  const own = site ? `&site=${encodeURIComponent(site)}` : "";
  // Whether there are pages below can be told at once where lists are short.
  const most = endpoint.list.get("limit").schema.maximum;
  const isShort = most !== undefined && most <= 50;
  const locale = endpoint.list.has("locale") ? ",locale" : "";
  const wanted = `fields=_,id,title,type,detail_url,html_url${locale}${isShort ? ",children(_,id)" : ""}${own}`;

  const level = (path, items, total) => {
    const made = h("ul", {}, items.map(node));
    if (items.length < total) {
      const more = h("button", { type: "button", class: "more", onclick: async () => {
        const answer = await get(`${path}&offset=${made.children.length - 1}`);
        if (answer.status !== 200) return more.replaceWith(problem(answer));
        more.parentNode.before(...answer.body.items.map(node));
        const left = answer.body.meta.total_count - made.children.length + 1;
        if (left > 0 && answer.body.items.length) more.textContent = t("{n} more", { n: left });
        else more.parentNode.remove();
      } }, t("{n} more", { n: total - items.length }));
      made.append(h("li", { class: "rest" }, more));
    }
    return made;
  };

  const below = async (id) => {
    const path = `/pages/?child_of=${id}&limit=${Math.min(50, most ?? 50)}&${wanted}`;
    const answer = await get(path);
    if (answer.status !== 200) return problem(answer);
    if (!answer.body.items.length) return h("p", { class: "quiet" }, t("No pages below."));
    return level(path, answer.body.items, answer.body.meta.total_count);
  };

  const node = (page) => {
    const isLeaf = page.meta.children?.length === 0;
    const title = nameOf(page);
    const opener = h("button", { type: "button", class: "opener", "aria-expanded": "false", "aria-label": t("Open {title}", { title }), onclick: async () => {
      const open = opener.getAttribute("aria-expanded") !== "true";
      opener.setAttribute("aria-expanded", String(open));
      if (open && !inner.children.length) inner.replaceChildren(await below(page.id));
      inner.hidden = !open;
    } });
    const inner = h("div", { class: "below", hidden: true });
    const made = h("li", {}, h("div", { class: "page" }, isLeaf ? h("span", { class: "leaf" }) : opener, h("a", { href: `#/pages/${page.id}/${site ? `?site=${encodeURIComponent(site)}` : ""}` }, title),
      h("span", { class: "kind" }, page.meta.type ?? ""), page.meta.html_url && h("span", { class: "where" }, outward(page.meta.html_url, isAddress(page.meta.html_url) ? new URL(page.meta.html_url).pathname : page.meta.html_url))), inner);
    made.open = () => !isLeaf && opener.click();
    return made;
  };

  const load = async () => {
    const home = await get(`/pages/detail_by_path/?html_path=/&${wanted}`);
    const others = locale ? await get(`/pages/?translation_of=root&${wanted}`) : null;
    let tops = [home, others].flatMap((answer) => (answer?.status !== 200 ? [] : answer.body.items ?? [answer.body]));
    tops = tops.filter((page, number) => tops.findIndex((other) => other.id === page.id) === number);
    if (query.get("locale")) tops = tops.filter((page) => page.meta.locale === query.get("locale"));
    if (home.status === 200) {
      const trees = tops.map((page) => h("section", { "aria-label": [nameOf(page), page.meta.locale].filter(Boolean).join(", ") }, page.meta.locale && h("h2", {}, page.meta.locale), level("", [page], 1)));
      replace(place, trees);
      for (const each of place.querySelectorAll("section > ul > li")) each.open();
    } else replace(place, await below("root"));
    place.removeAttribute("aria-busy");
  };
  load().catch((error) => replace(place, h("p", { class: "problem", role: "alert" }, String(error.message))));

  const { locales, sites = [] } = api.index;
  const known = sites.map(({ hostname, port, site_name }) => [`${hostname}:${port}`, site_name ? `${site_name} (${hostname}:${port})` : `${hostname}:${port}`]);
  const pick = (name, options) => h("select", { id: `pick-${name}`, onchange: (event) => change(query.with({ [name]: event.target.value || undefined })) },
    options.map(([value, text]) => h("option", { value, selected: value === (query.get(name) ?? "") }, text)));
  return [h("div", { class: "row picks" },
    known.length > 1 && h("label", { class: "field" }, h("span", {}, t("Site")), pick("site", [["", t("of this address")], ...known])),
    locale && locales.length > 1 && h("label", { class: "field" }, h("span", {}, t("Language")), pick("locale", [["", t("All languages")], ...locales.map((name) => [name, name])])),
    h("a", { class: "button", href: `#/pages/${site ? `?site=${encodeURIComponent(site)}` : ""}` }, t("Query this"))), place];
}

// Walls and tables.

/** In pixels: a place on the wall has 200 or a few more, and screens are finer than that. */
const WIDE_ENOUGH = 320;

function list(api, endpoint, query, change) {
  const isWall = endpoint.name === "images";
  const made = api.top(endpoint, [], "list").fields.has("renditions") ? ",renditions" : "";
  const asked = new Query(`/${endpoint.name}/`).with({ fields: isWall ? `_,id,title,type,detail_url,download_url,width,height${made}` : undefined });
  const shown = asked.with(Object.fromEntries(query.pairs));
  const place = h("div", { "aria-busy": "true" }, h("p", { class: "quiet" }, t("Loading …")));
  get(String(shown)).then((answer) => {
    place.removeAttribute("aria-busy");
    if (answer.status !== 200) return replace(place, problem(answer));
    const { items, meta } = answer.body;
    const to = (path) => `#browse/${endpoint.name}/?${new URLSearchParams({ ...Object.fromEntries(query.pairs), offset: new Query(path).get("offset") })}`;
    return replace(place, !items.length ? h("p", { class: "quiet" }, t("Nothing found.")) : isWall ? wall(items) : table(api, items),
      pager(api, answer.header, Number(query.get("offset") ?? 0), items.length, meta.total_count, to), facts(answer, api));
  }, (error) => replace(place, h("p", { class: "problem", role: "alert" }, error.message)));
  const search = (text) => change(query.with({ search: undefined, autocomplete: text || undefined, offset: undefined }));
  return [h("div", { class: "row picks" }, endpoint.list.has("autocomplete") && h("input", { id: "look-for", type: "search", placeholder: t("Search"), "aria-label": t("Search"), value: query.get("autocomplete") ?? "", oninput: later((event) => search(event.target.value), 300) }),
    h("a", { class: "button", href: `#${shown.with({ fields: undefined })}` }, t("Query this"))), place];
}

/** The smallest rendition of an image that fills its place on the wall, or else the image itself. */
function thumbnail(image) {
  const made = Object.values(image.renditions ?? {}).filter((one) => one?.width >= WIDE_ENOUGH);
  return made.sort((one, other) => one.width - other.width)[0]?.url ?? pictureIn(image);
}

function wall(items) {
  return h("ul", { class: "wall" }, items.map((image) => h("li", {}, h("a", { href: `#/images/${image.id}/` },
    h("span", { class: "frame" }, thumbnail(image) && h("img", { src: thumbnail(image), alt: "", loading: "lazy" })), h("span", { class: "name" }, nameOf(image))),
    h("small", {}, image.width ? `${image.width} × ${image.height}` : "", ` · #${image.id}`))));
}
