import { hash, type KeyObject } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { LedgerDamagedError, type RunId } from '@tallystick/core'
import { createFault, type Fault, isRunId } from '../format/event-row.ts'
import { splitLines } from '../export-events.ts'
import { isSignatureLine, isSignedBy } from './signed-note.ts'

/** Where a run ended when a checkpoint was made: an entry of the log that checkpoints sign. */
export interface CoveredHead {
  readonly runId: RunId
  readonly seq: number
  /** Of the link at `seq`. */
  readonly hash: string
}

/** One checkpoint in a file: the heads that it adds to the log, and the signed note over all heads so far. */
export interface CheckpointBlock {
  readonly heads: readonly CoveredHead[]
  /** The signed text: origin, size and root of the log, a line each. */
  readonly text: string
  readonly signatures: readonly string[]
  /** Where the next one begins in the file, in bytes. */
  readonly end: number
}

/** The entry of a head in the log, which is also its line in the file. */
export function formatEntry({ hash, seq, runId }: CoveredHead): string {
  return `${hash} ${seq} ${runId}`
}

/** A checkpoint as text: how many heads follow, the heads, the note, and an empty line that says it is whole. */
export function formatBlock(heads: readonly CoveredHead[], note: string): string {
  return `${[`heads ${heads.length}`, ...heads.map(formatEntry)].join('\n')}\n\n${note}\n`
}

/** Returns the size of a file in bytes; 0 if it does not exist. */
export async function readSize(file: string): Promise<number> {
  const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  return found?.size ?? 0
}

/**
 * The checkpoints in the first `size` bytes of a file, from the first on. A last one that was cut off while it was written is left out. Throws a
 * `LedgerDamagedError` at a line that is not what a checkpoint has there.
 */
export async function* readCheckpoints(file: string, size: number): AsyncGenerator<CheckpointBlock> {
  if (size === 0) return
  const lines = new FileLines(file, size)
  for (;;) {
    const first = await lines.next()
    // The cut-off text has to be the beginning of a checkpoint: a file of another kind is never overwritten.
    if (first === undefined && !/^(?:|h|he|hea|head|heads|heads \d*)$/.test(lines.rest)) {
      throw lines.damaged('a number of heads')
    }
    if (first === undefined) return
    const [, count] = /^heads (\d{1,15})$/.exec(first) ?? []
    if (count === undefined) throw lines.damaged('a number of heads')
    const heads = await readHeads(lines, Number(count))
    if (heads === undefined) return
    const note = await readNote(lines)
    if (note === undefined) return
    yield { heads, ...note, end: lines.bytes }
  }
}

async function readHeads(lines: FileLines, count: number): Promise<readonly CoveredHead[] | undefined> {
  const heads: CoveredHead[] = []
  while (heads.length < count) {
    const line = await lines.next()
    if (line === undefined) return undefined
    const [, hash, seq, runId] = /^([\w-]{43}) ([1-9]\d{0,15}) (.+)$/.exec(line) ?? []
    if (hash === undefined || !isRunId(runId)) throw lines.damaged('the head of a run')
    heads.push({ runId, seq: Number(seq), hash })
  }
  const blank = await lines.next()
  if (blank !== undefined && blank !== '') throw lines.damaged('an empty line')
  return blank === undefined ? undefined : heads
}

async function readNote(lines: FileLines): Promise<Pick<CheckpointBlock, 'text' | 'signatures'> | undefined> {
  let text = ''
  for (let line = await lines.next(); line !== ''; line = await lines.next()) {
    if (line === undefined) return undefined
    text += `${line}\n`
  }
  const signatures: string[] = []
  for (let line = await lines.next(); line !== ''; line = await lines.next()) {
    if (line === undefined) return undefined
    if (!isSignatureLine(line)) throw lines.damaged('a signature')
    signatures.push(line)
  }
  return { text, signatures }
}

/** The lines of a file that end with a line feed: what comes after the last one was cut off. */
class FileLines {
  readonly #file: string
  readonly #size: number
  readonly #lines: AsyncGenerator<Uint8Array>
  #number = 0
  /** Bytes that were read so far. */
  bytes = 0
  /** The text after the last line feed, once it was read. */
  rest = ''

  constructor(file: string, size: number) {
    this.#file = file
    this.#size = size
    this.#lines = splitLines(createReadStream(file, { end: size - 1 }))
  }

  async next(): Promise<string | undefined> {
    const { done, value } = await this.#lines.next()
    if (done === true) return undefined
    const text = Buffer.from(value).toString()
    this.#number += 1
    if (this.bytes + value.length >= this.#size) {
      this.rest = text
      return undefined
    }
    this.bytes += value.length + 1
    return text
  }

  damaged(expected: string): LedgerDamagedError {
    return new LedgerDamagedError(
      `The checkpoints in ${this.#file} are damaged: line ${this.#number} is not ${expected}. They cannot be trusted ` +
        'from there on. Restore the file from where it is kept.',
    )
  }
}

/** Adds a checkpoint after the others, durably. What was cut off after `end` makes room for it. */
export async function appendBlock(file: string, end: number, text: string): Promise<void> {
  const handle = await open(file, end === 0 ? 'w' : 'r+')
  try {
    await handle.truncate(end)
    await handle.write(text, end)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Whose log it is, and how far it goes. */
export interface CheckpointHeader {
  readonly origin: string
  /** Entries of the log. */
  readonly size: number
  /** RFC 6962 Merkle root over the entries, in base64. */
  readonly root: string
}

/** Returns the text that a checkpoint signs, in the form of a C2SP checkpoint: origin, size and root, a line each. */
export function formatHeader({ origin, size, root }: CheckpointHeader): string {
  return `${origin}\n${size}\n${root}\n`
}

const leafTag = Uint8Array.of(0)
const nodeTag = Uint8Array.of(1)

/**
 * The Merkle tree of RFC 6962 over a list that only grows. Holds the roots of its whole subtrees, so that it costs the
 * logarithm of what it was given.
 */
export class MerkleLog {
  /** Roots of whole subtrees, the largest first; their sizes are the bits of `size`. */
  readonly #subtrees: Uint8Array[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  append(entry: string | Uint8Array): void {
    let node = computeSha256(leafTag, typeof entry === 'string' ? Buffer.from(entry) : entry)
    for (let size = this.#size; size % 2 === 1; size = (size - 1) / 2) {
      node = computeSha256(nodeTag, this.#subtrees.pop() as Uint8Array, node)
    }
    this.#subtrees.push(node)
    this.#size += 1
  }

  /** The root over all entries so far; of none, the digest of nothing. */
  root(): Uint8Array {
    const [last, ...before] = this.#subtrees.toReversed()
    if (last === undefined) return computeSha256()
    return before.reduce((right, left) => computeSha256(nodeTag, left, right), last)
  }
}

function computeSha256(...parts: readonly Uint8Array[]): Uint8Array {
  return hash('sha256', Buffer.concat(parts), 'buffer')
}

/**
 * The log that checkpoints sign: every head that was ever covered, in the order in which they were. It only grows, so
 * each checkpoint stands for all before it.
 */
export class CheckpointLog {
  readonly #log = new MerkleLog()

  /** The header of a checkpoint over all entries so far. */
  header(origin: string): CheckpointHeader {
    return { origin, size: this.#log.size, root: Buffer.from(this.#log.root()).toString('base64') }
  }

  append(entry: string): void {
    this.#log.append(entry)
  }

  /** Takes a checkpoint of the file in; answers what is wrong with it. */
  check(block: CheckpointBlock, { origin, key }: { origin: string; key: KeyObject }): Fault | undefined {
    for (const head of block.heads) this.append(formatEntry(head))
    const [signedOrigin = '', size = '', root = ''] = block.text.split('\n')
    if (signedOrigin !== origin) return createFault('origin', origin, signedOrigin)
    if (!isSignedBy(block.text, block.signatures, { name: origin, key })) {
      return createFault('signature', `one of ${origin}`, 'none that fits')
    }
    const due = this.header(origin)
    if (size !== `${due.size}`) return createFault('size', due.size, size)
    return root === due.root ? undefined : createFault('root', due.root, root)
  }
}
