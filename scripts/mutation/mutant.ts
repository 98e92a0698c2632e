import { createHash } from 'node:crypto'
import type { Edit } from './operators/operator.ts'

/** One fault in one source file. */
export interface Mutant {
  /** The file, from the root of the repository. */
  readonly path: string
  readonly operator: string
  /** The nearest function around it that has a name; empty at the top of a file. */
  readonly within: string
  /** Its line, from 1. */
  readonly line: number
  readonly edit: Edit
  /** What the edit replaces, in one line. */
  readonly original: string
  /** What the edit puts there, in one line. */
  readonly becomes: string
  /** Which of the mutants of the file this is that are the same in all of the above but the line, from 0. */
  readonly occurrence: number
}

/** A mutant by what it changes and not by its line, so that an edit elsewhere in the file leaves its name as it was. */
function keyOf({ path, operator, within, original, becomes, occurrence }: Mutant): string {
  return JSON.stringify([path, operator, within, original, becomes, occurrence])
}

/** The text of the file with the fault in it. */
export function mutatedText(source: string, { edit }: Mutant): string {
  return source.slice(0, edit.start) + edit.text + source.slice(edit.end)
}

/** The lines that the fault changes, before and after, each as one line. */
export function diffOf(source: string, { edit }: Mutant): string {
  const start = source.lastIndexOf('\n', edit.start - 1) + 1
  const end = source.indexOf('\n', edit.end)
  const rest = source.slice(edit.end, end === -1 ? undefined : end)
  const before = source.slice(start, edit.start)
  const shown = (text: string): string => `${before}${text}${rest}`.replaceAll(/\s+/g, ' ').trim()
  return `- ${shown(source.slice(edit.start, edit.end))}\n+ ${shown(edit.text)}`
}

/**
 * Returns `count` of the mutants, as the seed draws them. Each mutant draws its own lot, so that a change of the sources
 * brings only mutants of the code that changed into the sample.
 */
export function sampleOf(mutants: readonly Mutant[], count: number, seed: number): readonly Mutant[] {
  const lot = (mutant: Mutant): string =>
    createHash('sha256')
      .update(`${seed} ${keyOf(mutant)}`)
      .digest('hex')
  const drawn = mutants.map((mutant) => ({ mutant, lot: lot(mutant) }))
  drawn.sort((a, b) => (a.lot < b.lot ? -1 : 1))
  return drawn.slice(0, count).map(({ mutant }) => mutant)
}
