/** One fault, as somebody could make it: a text of one source file, and what stands there instead. */
export interface Mutation {
  /** What the code does wrong then. */
  readonly fault: string
  /** The file, from the sources of its package. */
  readonly file: string
  /** Stands in the file exactly once. */
  readonly find: string
  readonly replace: string
}

/** Mutations of one file. */
export function mutationsOf(
  file: string,
  faults: Readonly<Record<string, readonly [find: string, replace: string]>>,
): readonly Mutation[] {
  return Object.entries(faults).map(([fault, [find, replace]]) => ({ fault, file, find, replace }))
}
