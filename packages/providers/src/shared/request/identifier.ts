const alphabet = /^[a-zA-Z0-9_-]+$/

/** Whether a name or id fits what all vendors accept: `[a-zA-Z0-9_-]`, from 1 to `maxLength` characters. */
export function isIdentifier(text: string, maxLength: number): boolean {
  return text.length <= maxLength && alphabet.test(text)
}

/**
 * Returns an identifier for a text that is no identifier: its readable part, then 8 hex digits of a hash of all of it.
 * It depends on the text alone, so that it stays the same from turn to turn. Another `salt` gives another identifier,
 * for the case that one is taken.
 */
export function fitIdentifier(text: string, maxLength: number, salt: number): string {
  const digest = hashOf(salt === 0 ? text : `${text}\0${salt}`)
    .toString(16)
    .padStart(8, '0')
  const readable = text.replace(/[^a-zA-Z0-9_-]/gu, '_').slice(0, maxLength - 9)
  return `${readable}_${digest}`
}

/** The first identifier for `text` that is not taken. */
export function freeIdentifier(
  text: string,
  maxLength: number,
  taken: { has(name: string): boolean },
): string {
  for (let salt = 0; ; salt++) {
    const candidate = fitIdentifier(text, maxLength, salt)
    if (!taken.has(candidate)) return candidate
  }
}

/** FNV-1a, 32 bits. Not for security: a collision only costs another salt. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let place = 0; place < text.length; place++) {
    const unit = text.charCodeAt(place)
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193)
    hash = Math.imul(hash ^ (unit >> 8), 0x01000193)
  }
  return hash >>> 0
}
