// Makes elements. What comes from answers gets into the page here alone, as text.

/** An element: attributes, `on…` listeners and properties; children are elements or texts. */
export function h(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "checked" || name === "value" || name === "indeterminate") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Whether a text is an address that a link may lead to. */
export function isAddress(text) {
  return typeof text === "string" && /^https?:\/\//i.test(text) && URL.canParse(text);
}

/** A link to another site, or the bare text if it is no such address. */
export function outward(address, ...children) {
  const shown = children.length ? children : [address];
  if (!isAddress(address)) return h("span", {}, shown);
  return h("a", { href: address, target: "_blank", rel: "noreferrer" }, shown);
}

/** Calls a function once, a moment after the last of several calls. */
export function later(call, wait = 250) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), wait);
  };
}

/** Replaces what is in an element; the focus stays with the control of the same id. */
export function replace(place, ...children) {
  const { id, selectionStart } = document.activeElement ?? {};
  const had = id && place.contains(document.activeElement);
  place.replaceChildren(...children.flat(Infinity).filter(Boolean));
  const again = had && document.getElementById(id);
  if (!again) return;
  again.focus({ preventScroll: true });
  if (selectionStart != null && again.setSelectionRange && /^(text|search)$/.test(again.type)) again.setSelectionRange(selectionStart, selectionStart);
}
