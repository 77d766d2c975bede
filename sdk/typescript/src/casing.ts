/**
 * HTTP names its fields in snake_case, the SDK in camelCase. Only the fields of an object itself are
 * renamed: what is inside them, such as `extra`, belongs to the app.
 */
export function toCamel<Value extends object>(wire: object): Value {
  return rename(wire, (name) =>
    name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
  ) as Value;
}

export function toSnake(given: object): Record<string, unknown> {
  return rename(given, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

function rename(object: object, to: (name: string) => string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [to(name), value]));
}
