import { withoutKeys } from '@tallystick/core/vocabulary'

/** Replaces a secret. */
export const struckOut = '[struck out]'

/** A text without what looks like a key. What says whose key it was stays, as in `sk-`. */
export function withoutKeyShapes(text: string): string {
  return withoutKeys(text, (key) => `${/^[a-z]{1,5}[-_]/i.exec(key)?.[0] ?? ''}${struckOut}`)
}
