import type { RuntimeEvent } from '@tallystick/core'
import { RecordCheck } from '@tallystick/ledger/record'
import type { RecordFault, RecordRow } from '../../api.ts'
import type { RunModel } from './run-model.ts'

/** Events of one kind, as ranges of their numbers. */
export type Ranges = readonly (readonly [from: number, to: number])[]

/** How far a run was verified in the page. */
export interface Trust {
  /** Events whose row is as it was written, and says what is shown; from the first on. */
  readonly verified: number
  /** Events that were to be verified. */
  readonly of: number
  readonly isDone: boolean
  readonly fault?: RecordFault
  readonly lastHash?: string
  /** Content that is not there: why, and of which events. */
  readonly removed: readonly {
    readonly kind: string
    readonly by?: string
    readonly at?: number
    readonly reason?: string
    readonly events: Ranges
  }[]
  /** Encrypted rows, of which only the facts in the open were compared, and rows whose body the export left out. */
  readonly sealed: Ranges
  readonly withheld: Ranges
  /** Times at which the run was taken over, and by which epoch it is written now. */
  readonly epochs: number
}

const rowsAtOnce = 200

/** Reads the rows after an event; none after the last one. */
export type ReadRows = (after: number) => Promise<readonly RecordRow[]>

/** Checks every row of a run against the chain of hashes, the events of the page, and the laws. */
export async function verifyRecord(
  model: RunModel,
  readRows: ReadRows,
  onProgress: (trust: Trust) => void,
  signal: AbortSignal,
): Promise<void> {
  const check = new RecordCheck()
  const of = model.lastSeq
  const seqs = { sealed: [] as number[], withheld: [] as number[] }
  let lastHash: string | undefined
  const report = (isDone: boolean, fault?: RecordFault): void =>
    onProgress({
      verified: check.rows,
      of,
      isDone,
      ...(fault && { fault }),
      ...(lastHash !== undefined && { lastHash }),
      removed: listRemoved(model.events.slice(0, of)),
      sealed: toRanges(seqs.sealed),
      withheld: toRanges(seqs.withheld),
      epochs: model.events[of - 1]?.epoch ?? 0,
    })
  report(of === 0)
  while (check.rows < of) {
    const rows = await readRows(check.rows)
    if (signal.aborted) return
    if (rows.length === 0) {
      const seq = check.rows + 1
      return report(true, { seq, what: 'row', expected: `the row of event ${seq}`, found: 'none' })
    }
    for (const [index, row] of rows.entries()) {
      if (check.rows >= of) break
      const checked = check.check(row, model.events[check.rows]!)
      if ('fault' in checked) return report(true, { seq: check.rows + 1, ...checked.fault })
      lastHash = row.hash
      if (checked.content === 'sealed' || checked.content === 'withheld') seqs[checked.content].push(row.seq)
      if (index % rowsAtOnce === rowsAtOnce - 1) {
        report(false)
        // Lets the worker answer what else the page asks.
        await new Promise((resolve) => setTimeout(resolve))
        if (signal.aborted) return
      }
    }
  }
  report(true)
}

/** Numbers in ascending order as ranges. */
export function toRanges(numbers: readonly number[]): Ranges {
  const ranges: [number, number][] = []
  for (const number of numbers) {
    const last = ranges.at(-1)
    if (last && last[1] === number - 1) last[1] = number
    else ranges.push([number, number])
  }
  return ranges
}

function listRemoved(events: readonly RuntimeEvent[]): Trust['removed'] {
  const byWhy = Map.groupBy(
    events.filter(({ removed }) => removed !== undefined),
    ({ removed }) => JSON.stringify(removed),
  )
  return [...byWhy.values()].map((gone) => ({
    ...gone[0]!.removed!,
    events: toRanges(gone.map(({ seq }) => seq)),
  }))
}
