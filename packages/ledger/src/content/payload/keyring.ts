import { option, type OptionCheck } from '@tallystick/core/kit'

/** The key that content about one subject is sealed with. */
export interface SubjectKey {
  /** Names the key and reveals nothing about the subject: the ledger stores it in the clear. */
  readonly id: string
  /** 32 bytes. */
  readonly bytes: Uint8Array
}

/**
 * Keeps the keys of subjects, outside the ledger and its backups: destroying a subject's key erases, in every copy,
 * what was said about them. Members may reject with a `TallystickError`; the ledger call that needs the key then
 * rejects with it.
 */
export interface Keyring {
  /** The key to seal with; made, and durable, where the subject has none, or none any more. */
  keyOf(subject: string): Promise<SubjectKey>
  /** The key of this id; `undefined` where it was destroyed, or is not known here. */
  key(id: string): Promise<Uint8Array | undefined>
  /** Destroys the keys of a subject, for good. Answers their ids; none where the subject had no key. */
  destroy(subject: string): Promise<readonly string[]>
}

/** What can serve as a keyring. */
export const keyring: OptionCheck = option.valueThat('a keyring, such as sqliteKeyring(path)', (value) => {
  const { keyOf, key, destroy } = Object(value) as Partial<Keyring>
  return [keyOf, key, destroy].every((member) => typeof member === 'function')
})
