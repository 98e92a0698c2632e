import { createPublicKey, type KeyLike, type KeyObject } from 'node:crypto'
import { ConfigurationError, type Ledger, LedgerDamagedError, type RunId } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/internal'
import { sealRun } from '../format/chain.ts'
import {
  type EventRow,
  createFault,
  type Fault,
  findLinkFault,
  genesis,
  type Link,
} from '../format/event-row.ts'
import type { StoreDatabase } from '../store/database.ts'
import { readRemovals, readRows, readRun } from '../store/records.ts'
import { getDatabase } from '../store/store.ts'
import {
  appendBlock,
  formatBlock,
  type CheckpointHeader,
  CheckpointLog,
  readCheckpoints,
  type CoveredHead,
  formatEntry,
  formatHeader,
  readSize,
} from './checkpoint-file.ts'
import { keyLike, requireOrigin, signNote, readSigningKey, readVerifyingKey } from './signed-note.ts'

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
 * `verifyCheckpoints` detect later whether covered events were rewritten, even if the chain was computed again. It
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
  const key = readSigningKey(given)
  const source = requireRows(ledger)
  const size = await readSize(file)
  const before = await readBefore(file, size, { origin, key: createPublicKey(key) })
  const heads = await listMovedHeads(ledger, source, before.heads)
  for (const head of heads) before.log.append(formatEntry(head))
  const header = before.log.header(origin)
  const note = signNote(formatHeader(header), { name: origin, key })
  // A checkpoint equal to the one before adds nothing.
  if (heads.length > 0 || before.end === 0) {
    if ((await readSize(file)) !== size) {
      throw new ConfigurationError(
        `Another process has written ${file} at the same time, and two checkpoints side by side would damage it. Nothing was written. ` +
          'Let one process make the checkpoints of a file, and make this one again.',
      )
    }
    await appendBlock(file, before.end, formatBlock(heads, note))
  }
  return { ...header, added: heads.length, note }
}

/** Returns the database of a ledger, whose chain can be signed. */
function requireRows(ledger: Ledger): StoreDatabase {
  const database = getDatabase(ledger)
  if (database) return database
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
  for await (const block of readCheckpoints(file, size)) {
    const fault = log.check(block, signer)
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

/** The ends of new and continued runs, in the order in which the runs were created. */
async function listMovedHeads(
  ledger: Ledger,
  source: StoreDatabase,
  covered: Before['heads'],
): Promise<readonly CoveredHead[]> {
  const moved: CoveredHead[] = []
  let known = 0
  for await (const { runId, head } of ledger.runs()) {
    const last = covered.get(runId)
    if (last) known += 1
    if (last && head.seq < last.seq)
      throw createLostError(
        runId,
        `ends at event ${head.seq}, and its last checkpoint signed event ${last.seq}`,
      )
    if (last?.seq !== head.seq) moved.push(await readSealedHead(source, runId))
  }
  if (known === covered.size) return moved.toReversed()
  const missing = new Set(covered.keys())
  for await (const { runId } of ledger.runs()) missing.delete(runId)
  throw createLostError([...missing][0] as RunId, 'is missing')
}

async function readSealedHead(source: StoreDatabase, runId: RunId): Promise<CoveredHead> {
  const row = await readRun(source, runId)
  if (row === undefined || sealRun(row) !== row.seal) {
    throw createLostError(runId, 'has a row that differs from what was written')
  }
  return { runId, seq: row.head_seq, hash: row.head_hash }
}

function createLostError(runId: RunId, what: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `Run ${runId} ${what}, so this ledger is not what the checkpoints signed. Nothing was signed. Run verify with the ` +
      'checkpoints for the whole picture, and restore a copy.',
  )
}

type Covered = CoveredHead & { readonly checkpoint: number }

/** A place that is not what was signed. */
interface UncoveredPlace extends Fault {
  readonly seq?: number
  /** The checkpoint that finds it, from 1. */
  readonly checkpoint: number
}

/** How far a run was found as it was signed. */
interface CoveredRun {
  readonly events: number
  readonly broken?: UncoveredPlace
}

/** Walks the chain of a run up to the last head that is covered, and compares it at each. */
async function checkCoveredRun(
  source: StoreDatabase,
  runId: RunId,
  heads: readonly Covered[],
): Promise<CoveredRun> {
  // In order of seq, which is not that of the checkpoints where the ledger was cut back in between.
  const due = heads.toSorted((a, b) => a.seq - b.seq)
  let last: Link = genesis
  const brokenAt = (seq: number, found: Fault): CoveredRun => {
    const { checkpoint } = due.find((head) => head.seq >= seq) ?? { checkpoint: 1 }
    return { events: last.seq, broken: { seq, checkpoint, ...found } }
  }
  const foundAt = (stored: EventRow): CoveredRun | undefined => {
    const found = findLinkFault(last, stored)
    if (found) return brokenAt(last.seq + 1, found)
    while (due[0]?.seq === stored.seq) {
      const { hash } = due[0]
      if (hash !== stored.hash) return brokenAt(stored.seq, createFault('hash', hash, stored.hash))
      due.shift()
    }
    last = stored
    return undefined
  }
  try {
    const toSeq = due.at(-1)?.seq ?? 0
    while (last.seq < toSeq) {
      const batch = await readRows(source, { runId, fromSeq: last.seq + 1, toSeq })
      for (const stored of batch) {
        const found = foundAt(stored)
        if (found) return found
      }
      if (batch.length === 0) break
    }
  } catch (error) {
    if (!(error instanceof LedgerDamagedError)) throw error
    return brokenAt(last.seq + 1, createFault('pages', 'readable', error.message))
  }
  if (last.seq === 0) return await checkDroppedRun(source, runId, due)
  return due.length === 0
    ? { events: last.seq }
    : brokenAt(last.seq + 1, createFault('event', 'the event that was signed', 'none'))
}

/** A run that was dropped left the hash that it ended with; its heads before that can no longer be compared. */
async function checkDroppedRun(
  source: StoreDatabase,
  runId: RunId,
  due: readonly Covered[],
): Promise<CoveredRun> {
  for await (const removal of readRemovals(source, runId)) {
    if (removal.kind !== 'dropped') continue
    const { seq: toSeq, digest: headHash } = removal
    const wrong = due.find(({ seq, hash }) => seq > toSeq || (seq === toSeq && hash !== headHash))
    if (wrong === undefined) return { events: 0 }
    const { seq, checkpoint } = wrong
    return { events: 0, broken: { seq, checkpoint, ...createFault('hash', wrong.hash, headHash) } }
  }
  const [first] = due
  const broken = {
    seq: 1,
    checkpoint: first?.checkpoint ?? 1,
    ...createFault('event', 'the event that was signed', 'none'),
  }
  return { events: 0, broken }
}

/** Where to find the checkpoints, and who has signed them. */
export interface VerifyCheckpointsOptions {
  readonly file: string
  /** Public Ed25519 key: PEM, a `KeyObject`, or the one-line form of signed notes, which names the origin as well. */
  readonly publicKey: KeyLike
  /** The origin that the checkpoints must have. Default: that of the key, or else of the first checkpoint. */
  readonly origin?: string | undefined
  /** Compares only this run. */
  readonly runId?: RunId | undefined
}

const verifyOptions = option.fields<VerifyCheckpointsOptions>(
  {
    ...{ file: option.filledText, publicKey: keyLike },
    ...{ origin: option.maybe(option.anyText), runId: option.maybe(option.anyText) },
  },
  { key: 'publicKey', path: 'file', name: 'origin' },
)

/** The first place where a run, or the file itself, differs from what was signed. */
export interface CheckpointFault extends UncoveredPlace {
  /** Absent if the checkpoints themselves are at fault. */
  readonly runId?: RunId
}

export interface CheckpointsVerdict {
  readonly scope: 'checkpoints'
  /** Every event that a checkpoint covers is as it was signed. */
  readonly ok: boolean
  /** The name of the ledger in the checkpoints; that of the signer. */
  readonly origin: string
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
  const { file, publicKey, origin, runId: only } = options
  const { key, name } = readVerifyingKey(publicKey)
  const source = requireRows(ledger)
  const size = await readSize(file)
  if (size === 0) {
    throw new ConfigurationError(
      `There are no checkpoints in ${file}, so nothing can be compared with them. Name the file that they were written to.`,
    )
  }
  const log = new CheckpointLog()
  const covered = new Map<RunId, Covered[]>()
  const broken: CheckpointFault[] = []
  let due = origin ?? name
  let checkpoints = 0
  try {
    for await (const block of readCheckpoints(file, size)) {
      due ??= block.text.split('\n')[0] ?? ''
      const found = log.check(block, { origin: due, key })
      if (found) {
        broken.push({ ...found, checkpoint: checkpoints + 1 })
        break
      }
      checkpoints += 1
      for (const head of block.heads) {
        if (only !== undefined && head.runId !== only) continue
        const heads = covered.get(head.runId) ?? []
        covered.set(head.runId, heads)
        heads.push({ ...head, checkpoint: checkpoints })
      }
    }
  } catch (error) {
    if (!(error instanceof LedgerDamagedError)) throw error
    broken.push({ ...createFault('file', 'checkpoints', error.message), checkpoint: checkpoints + 1 })
  }
  let events = 0
  for (const [runId, heads] of covered) {
    const found = await checkCoveredRun(source, runId, heads)
    events += found.events
    if (found.broken) broken.push({ runId, ...found.broken })
  }
  const ok = broken.length === 0
  return { scope: 'checkpoints', ok, origin: due ?? '', checkpoints, runs: covered.size, events, broken }
}
