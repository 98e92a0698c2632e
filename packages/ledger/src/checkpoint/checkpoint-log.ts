import type { KeyObject } from 'node:crypto'
import { entryOf, type CheckpointBlock } from './checkpoint-file.ts'
import { isSignedBy } from './checkpoint-note.ts'
import { fault, type Fault } from '../record/link-check.ts'
import { MerkleLog } from './merkle-log.ts'

/** Whose log it is, and how far it goes. */
export interface CheckpointHeader {
  readonly origin: string
  /** Entries of the log. */
  readonly size: number
  /** RFC 6962 Merkle root over the entries, in base64. */
  readonly root: string
}

/** The text that is signed for a log of a C2SP checkpoint. */
export function headerText({ origin, size, root }: CheckpointHeader): string {
  return `${origin}\n${size}\n${root}\n`
}

/**
 * The log that checkpoints sign: every head that was ever covered, in the order in which they were. It only grows, so
 * each checkpoint stands for all before it.
 */
export class CheckpointLog {
  readonly #log = new MerkleLog()

  /** What a checkpoint over all entries so far says. */
  header(origin: string): CheckpointHeader {
    return { origin, size: this.#log.size, root: Buffer.from(this.#log.root()).toString('base64') }
  }

  append(entry: string): void {
    this.#log.append(entry)
  }

  /** Takes a checkpoint of the file in; answers what is wrong with it. */
  faultOf(block: CheckpointBlock, { origin, key }: { origin: string; key: KeyObject }): Fault | undefined {
    for (const head of block.heads) this.append(entryOf(head))
    const [signedOrigin = '', size = '', root = ''] = block.text.split('\n')
    if (signedOrigin !== origin) return fault('origin', origin, signedOrigin)
    if (!isSignedBy(block.text, block.signatures, { name: origin, key })) {
      return fault('signature', `one of ${origin}`, 'none that fits')
    }
    const due = this.header(origin)
    if (size !== `${due.size}`) return fault('size', due.size, size)
    return root === due.root ? undefined : fault('root', due.root, root)
  }
}
