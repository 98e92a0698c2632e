/**
 * Whether a text from outside equals a secret. Takes the same time for every wrong text of a length, in every runtime.
 */
export function isSameSecret(given: string, secret: string): boolean {
  if (given.length !== secret.length) return false
  let difference = 0
  for (let index = 0; index < secret.length; index++) {
    difference |= given.charCodeAt(index) ^ secret.charCodeAt(index)
  }
  return difference === 0
}
