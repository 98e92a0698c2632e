import { join } from 'node:path'
import { codeDigest } from './code-digest.ts'

const packages = join(import.meta.dirname, '../../packages')

/** The file that holds the digests. */
export const digestsPath: string = join(packages, 'ledger/src/projection/tables/code-digests.ts')

/** What becomes of stored bytes, and how the state of a run is folded and written down. */
const reducer = [
  'core/src/machine/fold/evolve.ts',
  'core/src/machine/state/state-json.ts',
  'ledger/src/read/checked-event.ts',
  'ledger/src/projection/snapshot/bound-state.ts',
]

/** What is told of a run, and how it is stored. */
const projector = [
  ...reducer,
  'ledger/src/projection/summary/run-accumulator.ts',
  'ledger/src/projection/summary/summary-record.ts',
  'ledger/src/projection/summary/stored-run.ts',
  'ledger/src/projection/summary/totals-change.ts',
]

/** The text of the module, from the sources as they are. */
export function digestsModule(): string {
  const digestOf = (entries: readonly string[]): string =>
    codeDigest(
      entries.map((entry) => join(packages, entry)),
      packages,
    )
  return `// Written by \`pnpm digests\`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = '${digestOf(reducer)}'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = '${digestOf(projector)}'
`
}
