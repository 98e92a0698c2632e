import { createPublicKey, type KeyLike, type KeyObject } from 'node:crypto'
import { ConfigurationError, LedgerDamagedError, type Ledger, type RunId } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/kit'
import { internalsOf } from '../store/internals.ts'
import type { Store } from '../store/store.ts'
import { sealRun } from '../format/chain.ts'
import {
  appendBlock,
  blockText,
  checkpointsIn,
  entryOf,
  sizeOf,
  type CoveredHead,
} from './checkpoint-file.ts'
import { headerText, type CheckpointHeader } from './checkpoint-header.ts'
import { CheckpointLog } from './checkpoint-log.ts'
import { keyLike, requireOrigin, signedNote, signingKey } from './signed-note.ts'

/** How to make a checkpoint. */
export interface CheckpointOptions {
  /**
   * The file of the checkpoints, to which each is appended. Keep it where processes that write the ledger cannot write.
   */
  readonly file: string
  /** Private Ed25519 key: PEM, or a `KeyObject`. */
  readonly key: KeyLike
  /** Names the ledger to verifiers; one word, such as `example.com/agents`. */
  readonly origin: string
}

const checkpointOptions = option.fields<CheckpointOptions>(
  { file: option.filledText, key: keyLike, origin: option.anyText },
  { privateKey: 'key', path: 'file', name: 'origin' },
)

/** A checkpoint that was made. */
export interface Checkpoint extends CheckpointHeader {
  /** Runs whose heads were added: new ones, and those with new events since the checkpoint before. */
  readonly added: number
  /** The signed text, with its signature, in the form of a C2SP checkpoint. Keep a copy where it cannot be changed. */
  readonly note: string
}

/**
 * Signs the current end of every run of a ledger, and adds the checkpoint to a file. A checkpoint lets
 * `verifyCheckpoints` detect later whether covered events were rewritten, even if the chain was computed anew. It
 * covers no events after its heads, and does not prove that events were true before it was made.
 *
 * Rejects with `ConfigurationError` for a key, an origin or a ledger that cannot be used, and with
 * `LedgerDamagedError` if the file is damaged or signed by another key, or if the ledger has lost events of an
 * earlier checkpoint. Only one process at a time may write a file.
 */
export async function writeCheckpoint(ledger: Ledger, options: CheckpointOptions): Promise<Checkpoint> {
  requireLedger('writeCheckpoint', ledger)
  requireOptions('writeCheckpoint', checkpointOptions, options)
  const { file, key: given, origin } = options
  requireOrigin(origin)
  const key = signingKey(given)
  const source = requireRows(ledger)
  const size = await sizeOf(file)
  const before = await readBefore(file, size, { origin, key: createPublicKey(key) })
  const heads = await movedHeads(ledger, source, before.heads)
  for (const head of heads) before.log.append(entryOf(head))
  const header = before.log.header(origin)
  const note = signedNote(headerText(header), { name: origin, key })
  // A checkpoint that says what the one before says adds nothing.
  if (heads.length > 0 || before.end === 0) {
    if ((await sizeOf(file)) !== size) throw writtenMeanwhile(file)
    await appendBlock(file, before.end, blockText(heads, note))
  }
  return { ...header, added: heads.length, note }
}

/** The rows of a ledger, of which only the chain can be signed. */
export function requireRows(ledger: Ledger): Store {
  const beneath = internalsOf(ledger)
  if (beneath) return beneath.store
  throw new ConfigurationError(
    'This ledger keeps no chain of hashes, so there is nothing that a checkpoint could cover. Use a ledger of @tallystick/ledger.',
  )
}

interface Before {
  readonly log: CheckpointLog
  /** The last head that was covered of each run. */
  readonly heads: ReadonlyMap<RunId, CoveredHead>
  /** Where the last whole checkpoint ends. */
  readonly end: number
}

async function readBefore(
  file: string,
  size: number,
  signer: { readonly origin: string; readonly key: KeyObject },
): Promise<Before> {
  const log = new CheckpointLog()
  const heads = new Map<RunId, CoveredHead>()
  let end = 0
  for await (const block of checkpointsIn(file, size)) {
    const fault = log.faultOf(block, signer)
    if (fault) {
      throw new LedgerDamagedError(
        `The checkpoints in ${file} cannot be continued: the ${fault.what} of one should be ${fault.expected}, is ` +
          `${fault.found}. Use the key and the origin that the file was begun with, or begin another file.`,
      )
    }
    for (const head of block.heads) heads.set(head.runId, head)
    end = block.end
  }
  return { log, heads, end }
}

/** Where runs end that are new, or continued; in the order in which they were made. */
async function movedHeads(
  ledger: Ledger,
  source: Store,
  covered: Before['heads'],
): Promise<readonly CoveredHead[]> {
  const moved: CoveredHead[] = []
  let known = 0
  for await (const { runId, head } of ledger.runs()) {
    const last = covered.get(runId)
    if (last) known += 1
    if (last && head.seq < last.seq)
      throw lost(runId, `ends at event ${head.seq}, and its last checkpoint signed event ${last.seq}`)
    if (last?.seq !== head.seq) moved.push(await headOf(source, runId))
  }
  if (known < covered.size) throw lost(await missingRun(ledger, covered), 'is missing')
  return moved.toReversed()
}

async function headOf(source: Store, runId: RunId): Promise<CoveredHead> {
  const { row } = (await source.storedRun(runId)) ?? {}
  if (row === undefined || sealRun(row) !== row.seal) {
    throw lost(runId, 'has a row that differs from what was written')
  }
  return { runId, seq: row.head_seq, hash: row.head_hash }
}

async function missingRun(ledger: Ledger, covered: Before['heads']): Promise<RunId> {
  const missing = new Set(covered.keys())
  for await (const { runId } of ledger.runs()) missing.delete(runId)
  return [...missing][0] as RunId
}

function lost(runId: RunId, what: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `Run ${runId} ${what}, so this ledger is not what the checkpoints signed. Nothing was signed. Run verify with the ` +
      'checkpoints for the whole picture, and restore a copy.',
  )
}

function writtenMeanwhile(file: string): ConfigurationError {
  return new ConfigurationError(
    `Another process has written ${file} meanwhile, and two checkpoints side by side would damage it. Nothing was written. ` +
      'Let one process make the checkpoints of a file, and make this one again.',
  )
}
