import type { Sealer } from './encrypted-bytes.ts'
import type { HistoryPiece } from './stored-history.ts'

/** What the bodies of some events need to be read, beside their own bytes. */
export interface DecodingContext {
  /** Under their ids, the keys that bodies are sealed with, as far as they are there. */
  readonly sealers: ReadonlyMap<string, Sealer>
  /** Large contents under their digests. */
  readonly contents: ReadonlyMap<string, Uint8Array>
  /** Under their names, the pieces of what runs begin with. */
  readonly histories: ReadonlyMap<string, HistoryPiece>
  /** Whether there is a keyring: without one, it is unknown whether a key still exists. */
  readonly hasKeys: boolean
}
