// The grammar of `fields`: text to selection and back.
// A selection is {base: "" | "*" | "_", added: Map of names to selections or null, removed: Set}.

export const nothing = () => ({ base: "", added: new Map(), removed: new Set() });
const TOKEN = /[\w\u0080-\u{10ffff}]+|[*(),-]/uy;

/** The selection of a text; null if it does not follow the grammar, which the API explains. */
export function parse(text) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const found = TOKEN.exec(text);
    if (!found) return null;
    tokens.push(found[0]);
  }
  const level = () => {
    const made = nothing();
    for (let first = true; ; first = false) {
      const minus = tokens[0] === "-" && tokens.shift();
      const name = tokens.shift();
      if (!name || /^[(),-]$/.test(name)) throw SyntaxError();
      if (name === "*" || name === "_") {
        if (minus || !first) throw SyntaxError();
        made.base = name;
      } else if (minus) {
        made.added.delete(name);
        made.removed.add(name);
      } else {
        let inner = null;
        if (tokens[0] === "(") {
          tokens.shift();
          inner = level();
          if (tokens.shift() !== ")") throw SyntaxError();
        }
        made.removed.delete(name);
        made.added.set(name, inner);
      }
      if (tokens[0] !== ",") return made;
      tokens.shift();
    }
  };
  if (!text) return nothing();
  try {
    const made = level();
    return tokens.length ? null : made;
  } catch {
    return null;
  }
}

/** The text of a selection. */
export function format({ base, added, removed }) {
  const inside = (inner) => (inner && format(inner) ? `(${format(inner)})` : "");
  const names = [...added].map(([name, inner]) => name + inside(inner));
  return [...(base ? [base] : []), ...names, ...[...removed].map((name) => `-${name}`)].join(",");
}

/** Whether a level shows a field that nothing was said about. */
const byDefault = ({ base }, field, level) =>
  base === "*" ? !field.namedOnly : base === "" && level.defaults.has(field.name);

/** Whether a level shows a field. */
export function isShown(selection, field, level) {
  if (selection.added.has(field.name)) return true;
  return !selection.removed.has(field.name) && byDefault(selection, field, level);
}

/** Shows a field or takes it away. */
export function show(selection, field, level, on) {
  const usual = byDefault(selection, field, level);
  selection.removed.delete(field.name);
  selection.added.delete(field.name);
  if (on && !usual) selection.added.set(field.name, null);
  if (!on && usual) selection.removed.add(field.name);
}

/** Chooses what is in the brackets of a field, which is shown then. */
export function select(selection, field, level, inner) {
  show(selection, field, level, true);
  if (format(inner)) selection.added.set(field.name, inner);
}

/** Starts a level with other fields; what is shown stays if it has to be named. */
export function startWith(selection, base, level) {
  const shown = [...level.fields.values()].filter((field) => isShown(selection, field, level));
  const inner = new Map(selection.added);
  Object.assign(selection, { base, added: new Map(), removed: new Set() });
  for (const field of shown) {
    if (base === "_" || inner.get(field.name)) selection.added.set(field.name, inner.get(field.name) ?? null);
  }
}
