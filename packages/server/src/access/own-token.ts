import { isSameSecret } from '@tallystick/core/kit'
import type { Authorize } from './principal.ts'

/** A token that cannot be guessed, for a server without `authorize`. */
export function newToken(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(24))
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
}

/** Identifies a request with the token as one of the person who started the server. */
export function tokenOwner(token: string): Authorize {
  const expected = `Bearer ${token}`
  return (request) =>
    isSameSecret(request.headers.get('authorization') ?? '', expected)
      ? { name: 'operator', sees: 'everything' }
      : undefined
}
