import type { KeyLike } from 'node:crypto'
import { ConfigurationError, LedgerDamagedError, type Ledger, type RunId } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/kit'
import { checkpointsIn, sizeOf, type CheckpointBlock } from './checkpoint-file.ts'
import { CheckpointLog } from './checkpoint-log.ts'
import { keyLike, verifyingKey } from './signed-note.ts'
import { requireRows } from './checkpoint.ts'
import { coveredRunFault, type Covered, type UncoveredPlace } from './covered-run.ts'
import { fault } from '../format/event-row.ts'

/** Where to find the checkpoints, and who has signed them. */
export interface VerifyCheckpointsOptions {
  readonly file: string
  /** Public Ed25519 key: PEM, a `KeyObject`, or the one-line form of signed notes, which names the origin as well. */
  readonly publicKey: KeyLike
  /** The origin that the checkpoints must have. Default: that of the key, or else of the first checkpoint. */
  readonly origin?: string | undefined
}

const verifyOptions = option.fields<VerifyCheckpointsOptions>(
  { file: option.filledText, publicKey: keyLike, origin: option.maybe(option.anyText) },
  { key: 'publicKey', path: 'file', name: 'origin' },
)

/** The first place where a run, or the file itself, differs from what was signed. */
export interface CheckpointFault extends UncoveredPlace {
  /** Absent if the checkpoints themselves are at fault. */
  readonly runId?: RunId
}

/** What checkpoints say about a ledger. */
export interface CheckpointsVerdict {
  readonly scope: 'checkpoints'
  /** Whether every event that a checkpoint covers is what was signed. */
  readonly ok: boolean
  readonly checkpoints: number
  /** Runs that they cover. */
  readonly runs: number
  /** Events that they cover and that were found as they were signed. */
  readonly events: number
  readonly broken: readonly CheckpointFault[]
}

/**
 * Compares a ledger with its signed checkpoints: the log in the file is the signed one, and the chain of every run
 * still goes through each covered head. So it detects a rewritten history with a chain of its own, a removed run, and
 * a run that was cut back. It cannot detect changes of events after the last checkpoint, nor that the file itself was
 * replaced by an earlier state: for that keep copies of checkpoints elsewhere.
 *
 * Returns faults in the verdict. Rejects with `ConfigurationError` for a key, a file or a ledger that cannot be used.
 */
export async function verifyCheckpoints(
  ledger: Ledger,
  options: VerifyCheckpointsOptions,
): Promise<CheckpointsVerdict> {
  requireLedger('verifyCheckpoints', ledger)
  requireOptions('verifyCheckpoints', verifyOptions, options)
  const { file, publicKey, origin } = options
  const { key, name } = verifyingKey(publicKey)
  const source = requireRows(ledger)
  const log = new CheckpointLog()
  const covered = new Map<RunId, Covered[]>()
  const broken: CheckpointFault[] = []
  let due = origin ?? name
  let checkpoints = 0
  try {
    for await (const block of checkpointsIn(file, await requiredSize(file))) {
      due ??= originOf(block)
      const found = log.faultOf(block, { origin: due, key })
      if (found) {
        broken.push({ ...found, checkpoint: checkpoints + 1 })
        break
      }
      checkpoints += 1
      for (const head of block.heads) cover(covered, { ...head, checkpoint: checkpoints })
    }
  } catch (error) {
    if (!(error instanceof LedgerDamagedError)) throw error
    broken.push({ ...fault('file', 'checkpoints', error.message), checkpoint: checkpoints + 1 })
  }
  let events = 0
  for (const [runId, heads] of covered) {
    const found = await coveredRunFault(source, runId, heads)
    events += found.events
    if (found.broken) broken.push({ runId, ...found.broken })
  }
  return { scope: 'checkpoints', ok: broken.length === 0, checkpoints, runs: covered.size, events, broken }
}

async function requiredSize(file: string): Promise<number> {
  const size = await sizeOf(file)
  if (size > 0) return size
  throw new ConfigurationError(
    `There are no checkpoints in ${file}, so nothing can be compared with them. Name the file that they were written to.`,
  )
}

function originOf({ text }: CheckpointBlock): string {
  return text.split('\n')[0] ?? ''
}

function cover(covered: Map<RunId, Covered[]>, head: Covered): void {
  const heads = covered.get(head.runId)
  if (heads) heads.push(head)
  else covered.set(head.runId, [head])
}
