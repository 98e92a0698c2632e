import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { LedgerDamagedError, type RunId } from '@tallystick/core'
import { isSignatureLine } from './signed-note.ts'
import { linesOf } from '../transfer/lines-of.ts'
import { isRunId } from '../format/stored-ids.ts'

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
  /** What was signed: origin, size and root of the log, a line each. */
  readonly text: string
  readonly signatures: readonly string[]
  /** Where the next one begins in the file, in bytes. */
  readonly end: number
}

/** The entry of a head in the log, which is also its line in the file. */
export function entryOf({ hash, seq, runId }: CoveredHead): string {
  return `${hash} ${seq} ${runId}`
}

/** A checkpoint as text: how many heads follow, the heads, the note, and an empty line that says it is whole. */
export function blockText(heads: readonly CoveredHead[], note: string): string {
  return `${[`heads ${heads.length}`, ...heads.map(entryOf)].join('\n')}\n\n${note}\n`
}

/** Returns the size of a file in bytes; 0 if it does not exist. */
export async function sizeOf(file: string): Promise<number> {
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
export async function* checkpointsIn(file: string, size: number): AsyncGenerator<CheckpointBlock> {
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
    const heads = await headsFrom(lines, Number(count))
    if (heads === undefined) return
    const note = await noteFrom(lines)
    if (note === undefined) return
    yield { heads, ...note, end: lines.bytes }
  }
}

async function headsFrom(lines: FileLines, count: number): Promise<readonly CoveredHead[] | undefined> {
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

async function noteFrom(lines: FileLines): Promise<Pick<CheckpointBlock, 'text' | 'signatures'> | undefined> {
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
  /** What comes after the last line feed, once it was read. */
  rest = ''

  constructor(file: string, size: number) {
    this.#file = file
    this.#size = size
    this.#lines = linesOf(createReadStream(file, { end: size - 1 }))
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
