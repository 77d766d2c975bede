"use strict";
// Reads /openapi.json and shows it. Everything goes into the page as text, never as markup.

const byId = (id) => document.getElementById(id);

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** A sentence; what is between backticks is code. */
const prose = (text) => text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));

/** What a `$ref` stands for. */
const follow = (api, it) => (it?.$ref ? it.$ref.slice(2).split("/").reduce((at, key) => at[key], api) : it);

/** A form as one would write it down. */
function written(api, given, indent = "") {
  const form = follow(api, given) ?? {};
  if (form.const !== undefined) return JSON.stringify(form.const);
  if (form.enum) return form.enum.map((it) => JSON.stringify(it)).join(" | ");
  if (form.oneOf) return form.oneOf.map((it) => written(api, it, indent)).join(" | ");
  if (form.items) return written(api, form.items, indent) + "[]";
  const fields = fieldsOf(api, form);
  if (fields.length > 0 && indent.length < 12) {
    const lines = fields.map(([name, field, required]) => {
      const note = field.description ? "  // " + field.description : "";
      return `${indent}  ${name}${required ? "" : "?"}: ${written(api, field, indent + "  ")}${note}`;
    });
    return `{\n${lines.join("\n")}\n${indent}}`;
  }
  if (form.additionalProperties) return `{ [name]: ${written(api, form.additionalProperties, indent)} }`;
  return [form.type ?? (form.allOf ? "object" : "anything")].flat().join(" | ");
}

/** The fields of a form, those of all its parts. */
function fieldsOf(api, given) {
  const form = follow(api, given);
  const parts = (form.allOf ?? []).flatMap((part) => fieldsOf(api, part));
  const own = Object.entries(form.properties ?? {});
  return parts.concat(own.map(([name, field]) => [name, field, (form.required ?? []).includes(name)]));
}

/** A first body to change: the example, or the required fields. */
function sample(api, form) {
  const known = follow(api, form).example;
  const fields = fieldsOf(api, form).filter(([, , required]) => required);
  const empty = { string: "", integer: 0, boolean: false, array: [], object: {} };
  const first = (field) => follow(api, field).enum?.[0] ?? empty[follow(api, field).type] ?? "";
  return known ?? Object.fromEntries(fields.map(([name, field]) => [name, first(field)]));
}

function parameterField(parameter) {
  const input = element("input", { name: parameter.name, required: parameter.required === true });
  input.placeholder = parameter.schema?.default ?? (parameter.required ? "needed" : "");
  const label = element("label", { className: "path" }, parameter.name, parameter.required ? " *" : "");
  label.htmlFor = input.id = `p${Math.random().toString(36).slice(2)}`;
  const field = element("div", { className: "field" }, label, input);
  if (parameter.description) field.append(element("span", { className: "soft" }, ...prose(parameter.description)));
  return field;
}

/** Sends what the form says and shows what comes back. */
async function send(method, path, form, body, shown) {
  let url = path;
  const query = new URLSearchParams();
  for (const input of form.querySelectorAll("input")) {
    if (url.includes(`{${input.name}}`)) url = url.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.value !== "") query.set(input.name, input.value);
  }
  if (query.size > 0) url += `?${query}`;
  const headers = {};
  if (byId("token").value) headers.authorization = `Bearer ${byId("token").value.trim()}`;
  if (body) headers["content-type"] = "application/json";
  shown.hidden = false;
  shown.textContent = "…";
  try {
    const response = await fetch(url, { method, headers, body: body?.value || undefined });
    const text = await response.text();
    let told = text;
    try { told = JSON.stringify(JSON.parse(text), null, 2); } catch { /* it is no JSON: shown as it came */ }
    shown.textContent = `${response.status} ${response.statusText}\n\n${told}`;
  } catch (error) {
    shown.textContent = String(error);
  }
}

function operationOf(api, path, method, operation) {
  const form = element("form", {});
  form.append(...(operation.parameters ?? []).map(parameterField));
  const bodyForm = operation.requestBody?.content["application/json"].schema;
  const first = bodyForm && JSON.stringify(sample(api, bodyForm), null, 2);
  const body = bodyForm && element("textarea", { rows: first.split("\n").length + 1, spellcheck: false, value: first });
  if (body) {
    body.setAttribute("aria-label", "Body");
    form.append(element("h3", {}, "Body"), body, element("pre", {}, written(api, bodyForm)));
  }
  const shown = element("pre", { hidden: true, tabIndex: 0 });
  shown.setAttribute("role", "status");
  form.append(element("button", {}, "Send"), shown);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(method.toUpperCase(), path, form, body, shown);
  });
  const answers = element("div", {}, element("h3", {}, "Answers"));
  for (const [status, given] of Object.entries(operation.responses)) {
    const response = follow(api, given);
    answers.append(element("div", {}, element("code", {}, status), " ", ...prose(response.description)));
    const content = Object.values(response.content ?? {})[0]?.schema;
    if (status === "200" && content) answers.append(element("pre", {}, written(api, content)));
  }
  const title = element("summary", {}, element("span", { className: "method" }, method.toUpperCase()),
    element("span", { className: "path" }, path), " ", element("span", { className: "soft" }, ...prose(operation.summary)));
  const details = element("details", { id: operation.operationId }, title);
  // Made when it is first opened: there are many.
  details.addEventListener("toggle", () => details.append(element("div", {}, form, answers)), { once: true });
  details.dataset.words = `${method} ${path} ${operation.summary}`.toLowerCase();
  return details;
}

function show(api) {
  byId("version").textContent = api.info.version;
  byId("about").replaceChildren(...prose(api.info.description));
  for (const tag of api.tags) {
    const section = element("section", {}, element("h2", {}, tag.name, " ", element("small", {}, tag.description)));
    for (const [path, item] of Object.entries(api.paths)) {
      for (const [method, operation] of Object.entries(item)) {
        if (operation.tags.includes(tag.name)) section.append(operationOf(api, path, method, operation));
      }
    }
    byId("operations").append(section);
  }
}

byId("tools").addEventListener("submit", (event) => event.preventDefault());
byId("find").addEventListener("input", (event) => {
  const word = event.target.value.trim().toLowerCase();
  for (const section of document.querySelectorAll("section")) {
    const found = [...section.querySelectorAll("details")].filter((it) => !(it.hidden = !it.dataset.words.includes(word)));
    section.hidden = found.length === 0;
  }
});
fetch("/openapi.json").then((response) => response.json()).then(show)
  .catch((error) => { byId("about").textContent = `The document cannot be read: ${error}`; });
