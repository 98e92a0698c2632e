import { option, type OptionCheck } from '@tallystick/core/kit'

/** The key that encrypts the content about one subject. */
export interface SubjectKey {
  /** Names the key and reveals nothing about the subject: the ledger stores it in the clear. */
  readonly id: string
  /** 32 bytes. */
  readonly bytes: Uint8Array
}

/**
 * Keeps the keys of subjects, outside the ledger and its backups: destroying a subject's key erases the content about
 * the subject in every copy. Members may reject with a `TallystickError`; the ledger call that needs the key then
 * rejects with it.
 */
export interface Keyring {
  /** Returns the key of a subject; makes a new, durable one if the subject has none. */
  keyOf(subject: string): Promise<SubjectKey>
  /** Returns the key of this id; `undefined` if it was destroyed, or is not known here. */
  key(id: string): Promise<Uint8Array | undefined>
  /** Destroys the keys of a subject, for good. Returns their ids. */
  destroy(subject: string): Promise<readonly string[]>
}

/** What can serve as a keyring. */
export const keyring: OptionCheck = option.valueThat('a keyring, such as sqliteKeyring(path)', (value) => {
  const { keyOf, key, destroy } = Object(value) as Partial<Keyring>
  return [keyOf, key, destroy].every((member) => typeof member === 'function')
})
