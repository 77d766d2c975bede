import { idsOf } from "../entry/rules.ts";

export interface Known {
  id: string;
  name: string;
}

/** Those whose name or id has all of the words; who has exactly this id comes first. */
export function matchingPeople<One extends Known>(all: readonly One[], text: string): One[] {
  const wanted = text.toLocaleLowerCase().split(/\s+/).filter((word) => word !== "");
  const fits = ({ id, name }: Known) => {
    const words = `${name} ${id}`.toLocaleLowerCase();
    return wanted.every((word) => words.includes(word));
  };
  const exact = text.trim().toLocaleLowerCase();
  const isExact = ({ id }: Known) => Number(id.toLocaleLowerCase() === exact);
  return all.filter(fits).sort((a, b) => isExact(b) - isExact(a));
}

/** What a typed text names: somebody known by their whole name, else ids. */
export function namedBy(all: readonly Known[], text: string): string[] {
  const word = text.trim().toLocaleLowerCase();
  const named = all.filter(({ name }) => name.toLocaleLowerCase() === word);
  const isId = all.some(({ id }) => id.toLocaleLowerCase() === word);
  return named.length === 1 && !isId ? [named[0]!.id] : idsOf(text);
}
