/**
 * HTTP uses snake_case, the SDK camelCase. Only the fields of the object itself are renamed: nested data such
 * as `extra` belongs to the app.
 */
export function toCamel<Value extends object>(wire: object): Value {
  return rename(wire, camelName) as Value;
}

export function camelName(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

export function toSnake(given: object): Record<string, unknown> {
  return rename(given, snakeName);
}

export function snakeName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function rename(object: object, to: (name: string) => string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [to(name), value]));
}
