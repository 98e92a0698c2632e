import { equivalents } from './equivalents/list.ts'
import type { Mutant } from './mutant.ts'

/** A mutant that changes nothing that anyone could observe, by what it changes. */
export interface Equivalent {
  readonly path: string
  /** The nearest function around it that has a name; empty at the top of a file. */
  readonly within: string
  readonly operator: string
  /** What it replaces, in one line. */
  readonly original: string
  /** What it puts there, in one line. */
  readonly becomes: string
  /** Which of several that are the same in all of this, from 0; the first where it is left out. */
  readonly occurrence?: number
  /** Why nothing observable changes. */
  readonly why: string
}

/** Parts the mutants of some files into those to try and those on the list, and names the entries that fit none. */
export function withoutEquivalents(mutants: readonly Mutant[]): {
  readonly tried: readonly Mutant[]
  readonly leftOut: readonly Mutant[]
  readonly stale: readonly Equivalent[]
} {
  const paths = new Set(mutants.map(({ path }) => path))
  const listed = new Map(
    equivalents.filter(({ path }) => paths.has(path)).map((entry) => [nameOf(entry), entry]),
  )
  const leftOut = mutants.filter((mutant) => listed.has(nameOf(mutant)))
  const found = new Set(leftOut.map(nameOf))
  return {
    tried: mutants.filter((mutant) => !listed.has(nameOf(mutant))),
    leftOut,
    stale: [...listed].flatMap(([name, entry]) => (found.has(name) ? [] : [entry])),
  }
}

function nameOf(named: Omit<Equivalent, 'why'>): string {
  const { path, within, operator, original, becomes, occurrence = 0 } = named
  return JSON.stringify([path, within, operator, original, becomes, occurrence])
}
