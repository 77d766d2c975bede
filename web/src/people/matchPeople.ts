import { parseIds } from "../auth/validation.ts";

export interface PersonOption {
  id: string;
  name: string;
}

/** People whose name or id contains all words; an exact id comes first. */
export function matchingPeople<One extends PersonOption>(all: readonly One[], text: string): One[] {
  const wanted = text.toLocaleLowerCase().split(/\s+/).filter((word) => word !== "");
  const fits = ({ id, name }: PersonOption) => {
    const words = `${name} ${id}`.toLocaleLowerCase();
    return wanted.every((word) => words.includes(word));
  };
  const exact = text.trim().toLocaleLowerCase();
  const isExact = ({ id }: PersonOption) => Number(id.toLocaleLowerCase() === exact);
  return all.filter(fits).sort((a, b) => isExact(b) - isExact(a));
}

/** The ids a typed text names: one contact by the full name, else the ids in the text. */
export function typedIds(all: readonly PersonOption[], text: string): string[] {
  const word = text.trim().toLocaleLowerCase();
  const named = all.filter(({ name }) => name.toLocaleLowerCase() === word);
  const isId = all.some(({ id }) => id.toLocaleLowerCase() === word);
  return named.length === 1 && !isId ? [named[0]!.id] : parseIds(text);
}
