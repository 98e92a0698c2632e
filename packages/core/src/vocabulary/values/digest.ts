import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { canonicalJson, type JsonLike } from './json.ts'

/** SHA-256 over the canonical JSON of a value, in hex. */
export function digestOf<Value>(value: Value & JsonLike<Value>): string {
  const text = canonicalJson(value)
  return text.length > MAX_KNOWN_LENGTH ? computedDigest(text) : knownDigest(text)
}

/** The same, for a value that is asked for once: its digest is not kept. */
export function freshDigestOf<Value>(value: Value & JsonLike<Value>): string {
  return computedDigest(canonicalJson(value))
}

/** What was digested last by `digestOfTwice`. */
let last = { text: '', digest: '' }

/** The same, for a value that is asked for twice in a row, and then no more: only the last digest is kept. */
export function digestOfTwice<Value>(value: Value & JsonLike<Value>): string {
  const text = canonicalJson(value)
  if (text !== last.text) last = { text, digest: computedDigest(text) }
  return last.digest
}

/** Longer texts are not kept: their digests are asked for more rarely. */
const MAX_KNOWN_LENGTH = 500
const MAX_KNOWN = 1_000

/** Digests of late, by their texts: the input of a call is digested when it is collected, audited and started. */
let recent = new Map<string, string>()
let older = new Map<string, string>()

function knownDigest(text: string): string {
  const known = recent.get(text) ?? older.get(text)
  if (known !== undefined) return known
  const digest = computedDigest(text)
  if (recent.size >= MAX_KNOWN) {
    older = recent
    recent = new Map()
  }
  recent.set(text, digest)
  return digest
}

function computedDigest(text: string): string {
  return hostDigest === undefined ? bytesToHex(sha256(utf8ToBytes(text))) : hostDigest(text)
}

/** SHA-256 over the UTF-8 bytes of a text, in hex. */
export type TextDigest = (text: string) => string

let hostDigest: TextDigest | undefined

/** Computes digests with a function of the host from here on, or with the one of this file. Both have to answer the same. */
export function useHostDigest(digest: TextDigest | undefined): void {
  hostDigest = digest
}

/** Whether a function of the host computes the digests. */
export function hasHostDigest(): boolean {
  return hostDigest !== undefined
}
