import type { KeyObject } from 'node:crypto'
import { entryOf, type CheckpointBlock } from './checkpoint-file.ts'
import type { CheckpointHeader } from './checkpoint-header.ts'
import { isSignedBy } from './signed-note.ts'
import { fault, type Fault } from '../format/event-row.ts'
import { MerkleLog } from './merkle-log.ts'

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
