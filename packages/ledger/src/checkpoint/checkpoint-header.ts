/** Whose log it is, and how far it goes. */
export interface CheckpointHeader {
  readonly origin: string
  /** Entries of the log. */
  readonly size: number
  /** RFC 6962 Merkle root over the entries, in base64. */
  readonly root: string
}

/** Returns the text that a checkpoint signs, in the form of a C2SP checkpoint: origin, size and root, a line each. */
export function headerText({ origin, size, root }: CheckpointHeader): string {
  return `${origin}\n${size}\n${root}\n`
}
