import { createPrivateKey, createPublicKey, hash, KeyObject, sign, verify, type KeyLike } from 'node:crypto'
import { ConfigurationError } from '@tallystick/core'
import { option, type Schema } from '@tallystick/core/internal'

/** Ed25519 in the numbering of signed notes. */
const algorithm = 0x01
const keyIdBytes = 4
const dash = '\u2014'

/** Who signs: a name that says whose log it is, and an Ed25519 key. */
export interface NoteKey {
  readonly name: string
  readonly key: KeyObject
}

/**
 * A text signed in the form of C2SP's signed note: the text, an empty line, and a line with the name of the key, the
 * first four bytes of its digest, and the Ed25519 signature.
 */
export function signNote(text: string, { name, key }: NoteKey): string {
  const signature = Buffer.concat([
    computeKeyId(name, createPublicKey(key)),
    sign(null, Buffer.from(text), key),
  ])
  return `${text}\n${dash} ${name} ${signature.toString('base64')}\n`
}

/**
 * Checks that a note carries a valid signature of this key. Ignores signatures of other keys, such as those of witnesses,
 * and invalid signatures of this key.
 */
export function isSignedBy(text: string, signatures: readonly string[], { name, key }: NoteKey): boolean {
  const id = computeKeyId(name, key)
  return signatures.some((line) => {
    const bytes = parseSignature(line, name)
    if (bytes === undefined || Buffer.compare(bytes.subarray(0, keyIdBytes), id) !== 0) return false
    return verify(null, Buffer.from(text), key, bytes.subarray(keyIdBytes))
  })
}

export function isSignatureLine(line: string): boolean {
  return line.startsWith(`${dash} `)
}

/** Only what `base64` would write itself: several texts stand for the same bytes, and a changed one is a changed file. */
function parseSignature(line: string, name: string): Buffer | undefined {
  const start = `${dash} ${name} `
  const bytes = Buffer.from(line.slice(start.length), 'base64')
  return line === start + bytes.toString('base64') ? bytes : undefined
}

function computeKeyId(name: string, publicKey: KeyObject): Uint8Array {
  const text = Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(algorithm), toRawKey(publicKey)])
  return hash('sha256', text, 'buffer').subarray(0, keyIdBytes)
}

function toRawKey(key: KeyObject): Uint8Array {
  const { x = '' } = key.export({ format: 'jwk' })
  return Buffer.from(x, 'base64url')
}

/** The 12 bytes before a raw Ed25519 key in its SPKI form. */
const spkiHead = Buffer.from('302a300506032b6570032100', 'hex')

/** A key in one of the forms that Node reads. */
export const keyLike: Schema = option.valueThat(
  'an Ed25519 key, as PEM text or a KeyObject',
  (value) => typeof value === 'string' || value instanceof Uint8Array || value instanceof KeyObject,
)

/** Names of logs: no spaces, since a space ends them in a note, and no plus sign, since it ends them in a key. */
export function requireOrigin(origin: string): void {
  if (/^[^\s+\p{Cc}]+$/u.test(origin)) return
  throw new ConfigurationError(
    `The origin ${JSON.stringify(origin)} cannot name a log, since it has to be one word without a plus sign. Use ` +
      'something of your own, such as example.com/agents.',
  )
}

/** Reads the signing key, PEM or a `KeyObject`. Throws a `ConfigurationError` if it is not a private Ed25519 key. */
export function readSigningKey(key: KeyLike): KeyObject {
  return readEd25519('signs checkpoints', 'private', () =>
    key instanceof KeyObject ? key : createPrivateKey(key),
  )
}

/**
 * Reads the key that verifies: PEM, a `KeyObject`, or the one-line form of signed notes (`name+id+key`), which brings
 * the name along. Throws a `ConfigurationError` if it is not a public Ed25519 key.
 */
export function readVerifyingKey(key: KeyLike): { readonly key: KeyObject; readonly name?: string } {
  const oneLine = typeof key === 'string' ? /^([^\s+]+)\+([0-9a-f]{8})\+(\S+)$/.exec(key.trim()) : null
  if (!oneLine) return { key: readPublicKey(key) }
  const [, name = '', id, encoded = ''] = oneLine
  const bytes = Buffer.from(encoded, 'base64')
  const publicKey = readEd25519('verifies checkpoints', 'public', () => {
    if (bytes[0] !== algorithm || bytes.length !== 33) throw new Error('it is of another algorithm')
    return createPublicKey({
      key: Buffer.concat([spkiHead, bytes.subarray(1)]),
      format: 'der',
      type: 'spki',
    })
  })
  if (Buffer.from(computeKeyId(name, publicKey)).toString('hex') !== id)
    throw createUnusableKeyError('verifies checkpoints', 'its id is not that of its bytes')
  return { name, key: publicKey }
}

/** Returns a public key in its one-line form, with the name of its log, for verifiers. */
export function formatVerifierKey(origin: string, key: KeyLike): string {
  requireOrigin(origin)
  const publicKey = readPublicKey(key)
  const encoded = Buffer.concat([Buffer.of(algorithm), toRawKey(publicKey)]).toString('base64')
  return `${origin}+${Buffer.from(computeKeyId(origin, publicKey)).toString('hex')}+${encoded}`
}

function readPublicKey(key: KeyLike): KeyObject {
  return readEd25519('verifies checkpoints', 'public', () =>
    key instanceof KeyObject ? key : createPublicKey(key),
  )
}

function readEd25519(use: string, type: 'private' | 'public', read: () => KeyObject): KeyObject {
  let key: KeyObject
  try {
    key = read()
  } catch (cause) {
    throw createUnusableKeyError(use, cause instanceof Error ? cause.message : 'it cannot be read', cause)
  }
  if (key.type !== type || key.asymmetricKeyType !== 'ed25519') {
    throw createUnusableKeyError(
      use,
      `it is a ${key.type} key of the kind ${key.asymmetricKeyType ?? 'secret'}`,
    )
  }
  return key
}

function createUnusableKeyError(use: string, why: string, cause?: unknown): ConfigurationError {
  return new ConfigurationError(
    `The key that ${use} cannot be used: ${why}. Create one with: openssl genpkey -algorithm ed25519 -out key.pem; its ` +
      'public half with: openssl pkey -in key.pem -pubout',
    { cause },
  )
}
