// What the page says, in the reader's language. English texts are their own keys.

const GERMAN = {
  "API explorer": "API-Explorer", "Content": "Inhalt", "Query": "Abfrage", "Language": "Sprache",
  "Skip to the content": "Zum Inhalt", "Pages": "Seiten", "Images": "Bilder",
  "Documents": "Dokumente", "Redirects": "Weiterleitungen", "Site": "Website", "of this address": "dieser Adresse", "All": "Alle",
  "Open {title}": "{title} aufklappen", "Query this": "Als Abfrage öffnen", "No pages below.": "Keine Seiten darunter.",
  "{n} more": "{n} weitere", "Loading …": "Lädt …", "Nothing found.": "Nichts gefunden.", "Search": "Suchen", "Previous": "Zurück", "Next": "Weiter",
  "{from} to {to} of {total}": "{from} bis {to} von {total}", "Address": "Adresse", "Path below {base}": "Pfad unter {base}", "Send": "Senden",
  "Answer": "Antwort", "Status": "Status", "Time": "Zeit", "Size": "Größe", "Cache tags": "Cache-Tags", "Table": "Tabelle", "JSON": "JSON",
  "View": "Ansicht", "Copy as": "Kopieren als", "Copied.": "Kopiert.", "Copy it from here.": "Von hier kopieren.", "Python": "Python", "TypeScript type": "TypeScript-Typ",
  "The server does not answer.": "Der Server antwortet nicht.", "Endpoint": "Endpunkt", "What": "Was", "a list": "eine Liste", "one by its id": "eins nach Id",
  "one by its path": "eins nach Pfad", "its address (find)": "seine Adresse (find)", "Id": "Id", "Types": "Typen", "Fields": "Felder", "Filters": "Filter", "Order": "Reihenfolge",
  "Place, language, site": "Ort, Sprache, Website", "More": "Mehr", "Search and limit": "Suche und Anzahl", "the default fields": "die üblichen Felder", "all fields": "alle Felder",
  "only what is ticked": "nur Angekreuztes", "Start with": "Beginne mit", "Fields of {name}": "Felder von {name}", "Find a field": "Feld suchen", "Find a type": "Typ suchen",
  "Add a filter": "Filter hinzufügen", "Add an order": "Reihenfolge hinzufügen", "Add a facet": "Facette hinzufügen", "Comparison": "Vergleich", "Value of {name}": "Wert von {name}", "Remove {name}": "{name} entfernen",
  "ascending": "aufsteigend", "descending": "absteigend", "Direction of {name}": "Richtung von {name}", "random": "zufällig", "chosen": "gewählt", "choose …": "wählen …",
  "is": "ist", "has all of": "hat alle von", "is one of": "ist eins von", "is none of": "ist keins von", "below": "unter", "at most": "höchstens", "above": "über",
  "at least": "mindestens", "is missing": "fehlt", "begins with": "beginnt mit", "the home page": "die Startseite", "Search by title": "Nach Titel suchen", "yes": "ja", "no": "nein",
  "text": "Text", "any": "beliebig", "choice": "Auswahl", "date": "Datum", "date-time": "Zeitpunkt", "time": "Uhrzeit", "boolean": "ja/nein", "integer": "ganze Zahl", "number": "Zahl",
  "decimal": "Dezimalzahl", "url": "Adresse", "email": "E-Mail", "object": "Objekt", "objects": "Objekte", "list": "Liste", "several, with commas": "mehrere, mit Kommas",
  "Only in the address": "Nur in der Adresse", "Moved to {path}": "Weitergeleitet zu {path}", "{n} entries": "{n} Einträge", "{n} keys": "{n} Schlüssel",
  "The description of the API cannot be read: {why}": "Die Beschreibung der API ist nicht lesbar: {why}", "Order by {name}": "Nach {name} ordnen", "Pages of the answer": "Teile der Antwort",
  "All languages": "Alle Sprachen",
};

const known = { en: "English", de: "Deutsch" };
let language = "en";
try {
  language = localStorage.getItem("contentapi-language");
} catch { /* storage can be forbidden */ }
if (!(language in known)) language = navigator.language.toLowerCase().startsWith("de") ? "de" : "en";
document.documentElement.lang = language;

export const languages = Object.entries(known);
export const current = () => language;

/** Chooses the language of the page, also for later visits. */
export function speak(wanted) {
  language = document.documentElement.lang = wanted;
  try {
    localStorage.setItem("contentapi-language", wanted);
  } catch { /* as above */ }
}

/** A text in the reader's language, with values for its {names}. */
export function t(text, values = {}) {
  const own = (language === "de" && GERMAN[text]) || text;
  return own.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}
