// The page: a list of models, one of which is shown. The address after # is its name.

import { short } from "./charts.js";
import { ModelView } from "./model.js";
import { get, open, session } from "./service.js";

//: Milliseconds between two looks at the list of models, and before another try.
const PACE = 3000, AGAIN = 1000;
const NOTHING = `No models yet. Make one, and teach it:

curl -X PUT ${location.origin}/models/price -H 'Content-Type: application/json' -d '{"target": "y"}'
curl ${location.origin}/models/price/learn -H 'Content-Type: application/json' -d '{"row": {"x": 1}, "y": 2}'`;
const element = (id) => document.getElementById(id);
const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

let view, models = [];

function state(what) {
  const known = { on: "live", off: "no connection: trying again" };
  element("state").textContent = known[what] ?? what;
  element("state").className = what === "on" ? "on" : "off";
}

const chosen = () => decodeURIComponent(location.hash.slice(1));

function list() {
  const current = view.name;
  element("models").replaceChildren(...models.map((model) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = `#${encodeURIComponent(model.name)}`;
    if (model.name === current) link.setAttribute("aria-current", "page");
    const name = document.createElement("b"), of = document.createElement("span");
    name.textContent = model.name;
    of.textContent = model.alarms.length ? `alarm: ${model.alarms.join(", ")}` : `${model.target}, ${short(model.n_rows)} rows`;
    of.className = model.alarms.length ? "of alarm" : "of";
    link.append(name, of);
    item.append(link);
    return item;
  }));
}

function choose() {
  const name = models.some((model) => model.name === chosen()) ? chosen() : models[0]?.name;
  element("model").hidden = name === undefined;
  element("empty").hidden = name !== undefined;
  element("empty").textContent = NOTHING;
  document.title = name === undefined ? "streamlasso" : `${name} – streamlasso`;
  if (name === undefined) view.hide();
  else view.show(name);
}

// Keep focus where it is: the list changes only if what it says does.
async function refresh() {
  try {
    const found = (await get("/models")).models;
    const before = JSON.stringify(models) + view.name;
    models = found;
    if (!models.length) state("on");
    choose();
    if (JSON.stringify(models) + view.name !== before) keepFocus(list);
  } catch (error) {
    if (error.status === 401) return start();
    state("off");
  }
  if (!document.hidden) await wait(PACE);
  else await new Promise((seen) => document.addEventListener("visibilitychange", seen, { once: true }));
  return refresh();
}

function keepFocus(change) {
  const at = document.activeElement?.closest("nav a")?.getAttribute("href");
  change();
  if (at) element("models").querySelector(`a[href="${CSS.escape(at)}"]`)?.focus();
}

async function start() {
  let found;
  while (!found) {
    try {
      found = await session();
    } catch {
      state("off");
      await wait(AGAIN);
    }
  }
  const locked = found.tokens && !found.right;
  element("ask").hidden = !locked;
  element("room").hidden = locked;
  if (locked) {
    state("locked");
    element("token").focus();
    return;
  }
  view ??= new ModelView(state);
  await refresh();
}

element("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  element("wrong").textContent = "";
  try {
    await open(element("token").value);
    element("token").value = "";
    await start();
  } catch (error) {
    element("wrong").textContent = error.message;
  }
});
addEventListener("hashchange", () => { if (view) { choose(); keepFocus(list); } });
start();
