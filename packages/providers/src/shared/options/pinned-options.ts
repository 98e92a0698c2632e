import type { Json, JsonObject } from '@tallystick/core/vocabulary'

/**
 * Those of a model's options that the ledger keeps with its agent, so that a resume by others is found: what is named
 * here, as far as it was given. Keys, headers, addresses, functions, bodies of one's own, and whatever may hold a token are
 * never named.
 */
export function pinnedOptions<Options extends object>(
  options: Options,
  names: readonly (keyof Options & string)[],
): { readonly pinnedOptions?: JsonObject } {
  const pinned: Record<string, Json> = {}
  for (const name of names) {
    const value = options[name]
    if (value !== undefined) pinned[name] = structuredClone(value) as Json
  }
  return Object.keys(pinned).length > 0 ? { pinnedOptions: pinned } : {}
}
